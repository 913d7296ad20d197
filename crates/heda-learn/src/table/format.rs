//! How a CSV file is written: separator, quote and encoding, stated or found from its first lines.

use super::error::{ReadError, ReadFault};
use crate::reference::{FileValue, Form};
use crate::spelling::UnknownWord;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

crate::described! {
    /// How a CSV file is written.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
    pub struct CsvFormat {
        /// Field separator: `,`, `;`, `tab` or another character; found in the header by default.
        #[key("\";\"")]
        pub separator: Option<SeparatorMark>,
        /// Quote around a field that contains a separator; found in the first lines by default.
        #[key("\"'\"")]
        pub quote: Option<SeparatorMark>,
        /// Character encoding.
        #[key("\"latin-1\"")]
        pub encoding: TextEncoding = TextEncoding::default(),
    }
}

crate::words!(TextEncoding);

impl FileValue for SeparatorMark {
    fn form() -> Form {
        Form::text("one character in quotes, or \"tab\"")
    }
}

/// One character of one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeparatorMark(u8);

/// How characters are bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TextEncoding {
    /// The usual one.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// Latin-1 with the characters that Windows adds to it (Windows-1252).
    #[serde(rename = "latin-1")]
    Latin1,
}

impl FromStr for SeparatorMark {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text.as_bytes() {
            b"tab" | b"\\t" => Ok(Self(b'\t')),
            &[byte] if byte == b'\t' || byte.is_ascii_punctuation() || byte == b' ' => {
                Ok(Self(byte))
            }
            _ => Err(UnknownWord::Mark(super::shorten(text))),
        }
    }
}

impl fmt::Display for SeparatorMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b'\t' => f.write_str("tab"),
            byte => write!(f, "{}", char::from(byte)),
        }
    }
}

impl Serialize for SeparatorMark {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SeparatorMark {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl FromStr for TextEncoding {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text.to_ascii_lowercase().as_str() {
            "utf-8" | "utf8" => Ok(Self::Utf8),
            "latin-1" | "latin1" | "windows-1252" => Ok(Self::Latin1),
            _ => Err(UnknownWord::Encoding(super::shorten(text))),
        }
    }
}

/// What the parser needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundFormat {
    pub(super) separator: u8,
    pub(super) quote: u8,
    pub(super) encoding: TextEncoding,
}

/// Separators that are looked for; where two are as frequent the first wins.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Lines of the head that are looked at for quotes.
const LOOKED_AT: usize = 50;

impl CsvFormat {
    /// Completes what is stated from the beginning of the file, without its byte order mark.
    pub(super) fn complete(self, head: &[u8], file: &str) -> Result<FoundFormat, ReadError> {
        let other = |fault| ReadError::new(file, fault);
        if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
            return Err(other(ReadFault::OtherEncoding("UTF-16")));
        }
        if head.starts_with(b"PK\x03\x04") {
            return Err(other(ReadFault::Archive));
        }
        let header = head.split(|&byte| byte == b'\n').next();
        if header.is_some_and(|header| header.contains(&0)) {
            return Err(other(ReadFault::Binary));
        }
        let separator = self.separator.map_or_else(|| separator(head), |m| m.0);
        let quote = self.quote.map_or_else(|| quote(head, separator), |m| m.0);
        Ok(FoundFormat {
            separator,
            quote,
            encoding: self.encoding,
        })
    }
}

/// The separator that is most frequent in the header, outside of quotes.
fn separator(head: &[u8]) -> u8 {
    let mut counts = [0u32; SEPARATORS.len()];
    let mut quoted = false;
    for &byte in head {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if quoted => {}
            _ => {
                if let Some(at) = SEPARATORS.iter().position(|&s| s == byte) {
                    counts[at] += 1;
                }
            }
        }
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let at = counts.iter().position(|&count| count == most).unwrap_or(0);
    SEPARATORS[at]
}

/// `'` if cells of the first lines stand in it and none in `"`.
fn quote(head: &[u8], separator: u8) -> u8 {
    let stands_in = |cell: &[u8], quote| {
        let cell = cell.trim_ascii();
        cell.len() >= 2 && cell.first() == Some(&quote) && cell.last() == Some(&quote)
    };
    let lines = head.split(|&byte| byte == b'\n').take(LOOKED_AT);
    let mut cells = lines.flat_map(|line| line.split(move |&byte| byte == separator));
    let (mut single, mut double) = (false, false);
    cells.by_ref().for_each(|cell| {
        single |= stands_in(cell, b'\'');
        double |= stands_in(cell, b'"');
    });
    match single && !double {
        true => b'\'',
        false => b'"',
    }
}

impl FoundFormat {
    /// A cell as text, without white space around it; `None` if it is not in the encoding.
    /// Where `;` separates, the comma is for decimals.
    pub(super) fn text<'f>(&self, cell: &'f [u8]) -> Option<Cow<'f, str>> {
        let text = match (self.encoding, std::str::from_utf8(cell)) {
            (TextEncoding::Utf8, text) => Cow::Borrowed(text.ok()?.trim()),
            (TextEncoding::Latin1, Ok(text)) if text.is_ascii() => Cow::Borrowed(text.trim()),
            (TextEncoding::Latin1, _) => Cow::Owned(latin1(cell).trim().to_owned()),
        };
        match self.separator == b';' && is_decimal(&text) {
            true => Some(Cow::Owned(text.replace(',', "."))),
            false => Some(text),
        }
    }
}

/// Digits, a comma, digits.
fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    unsigned
        .split_once(',')
        .is_some_and(|(whole, part)| digits(whole) && digits(part))
}

/// What Windows has where Latin-1 has control characters (0x80 to 0x9f).
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

fn latin1(bytes: &[u8]) -> String {
    let character = |&byte: &u8| match byte {
        0x80..=0x9f => WINDOWS[usize::from(byte - 0x80)],
        _ => char::from(byte),
    };
    bytes.iter().map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(head: &str) -> (char, char) {
        let found = CsvFormat::default().complete(head.as_bytes(), "x").unwrap();
        (found.separator.into(), found.quote.into())
    }

    #[test]
    fn separators_and_quotes_are_found() {
        assert_eq!(found("a,b\n1,2\n"), (',', '"'));
        assert_eq!(found("a;b\n1,5;2,5\n"), (';', '"'));
        assert_eq!(found("a\tb c\td\n"), ('\t', '"'));
        assert_eq!(found("\"a;b;c\",d\n"), (',', '"'), "not within quotes");
        assert_eq!(found("one\n1\n"), (',', '"'));
        assert_eq!(found("'a'|'b'\n'x|y'|1\n"), ('|', '\''));
        assert_eq!(found("a,b\n'x',\"y\"\n"), (',', '"'), "both occur");
    }

    #[test]
    fn what_is_stated_counts() {
        let format = CsvFormat {
            separator: Some("|".parse().unwrap()),
            quote: Some("'".parse().unwrap()),
            encoding: TextEncoding::Latin1,
        };
        let found = format.complete(b"a,b\n", "x").unwrap();
        assert_eq!((found.separator, found.quote), (b'|', b'\''));
        assert_eq!(found.text(b" \xfcber \x80 ").unwrap(), "über €");
        assert!("ab".parse::<SeparatorMark>().is_err() && "x".parse::<SeparatorMark>().is_err());
        assert!("koi8".parse::<TextEncoding>().is_err());
    }

    #[test]
    fn decimal_commas_are_read_where_semicolons_separate() {
        let german = CsvFormat::default().complete(b"a;b\n", "x").unwrap();
        assert_eq!(german.text(b"-1,25").unwrap(), "-1.25");
        assert_eq!(german.text(b"1,2,3").unwrap(), "1,2,3");
        assert_eq!(german.text(b"a,b").unwrap(), "a,b");
        let english = CsvFormat::default().complete(b"a,b\n", "x").unwrap();
        assert_eq!(english.text(b"1,25").unwrap(), "1,25");
        assert_eq!(english.text(b"\xfc"), None);
    }

    #[test]
    fn what_is_no_csv_is_named() {
        let fault = |head: &[u8]| {
            let error = CsvFormat::default().complete(head, "x").unwrap_err();
            error.fault().clone()
        };
        assert_eq!(fault(b"\xff\xfea\0"), ReadFault::OtherEncoding("UTF-16"));
        assert_eq!(fault(b"PK\x03\x04..."), ReadFault::Archive);
        assert_eq!(fault(b"a\0b"), ReadFault::Binary);
    }
}
