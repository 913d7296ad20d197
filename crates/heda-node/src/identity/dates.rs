//! When a certificate begins and ends, read from its DER. The TLS library checks dates only while
//! it checks a signature, for which an authority's certificate would be needed.

use crate::system::clock::Timestamp;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// First and last second of a certificate's validity (RFC 5280, section 4.1); none for bytes that
/// are no certificate.
pub(crate) fn validity(certificate: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut fields, _) = element(certificate, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        fields = any(fields)?.1;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        fields = any(fields)?.1;
    }
    let (validity, _) = element(fields, SEQUENCE)?;
    let (first, rest) = time(validity)?;
    let (last, _) = time(rest)?;
    Some((first, last))
}

/// The content of the first element, and what follows it.
fn any(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.get(1..)?.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            let number = digits.iter().fold(0, |n, &byte| n << 8 | usize::from(byte));
            (number, rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    (bytes.first() == Some(&tag)).then(|| any(bytes))?
}

fn time(bytes: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (text, rest) = any(bytes)?;
    let (year, text) = match *bytes.first()? {
        UTC_TIME => {
            let (year, text) = number(text, 2)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, text)
        }
        GENERALIZED_TIME => number(text, 4)?,
        _ => return None,
    };
    let (month, text) = number(text, 2)?;
    let (day, text) = number(text, 2)?;
    let (hour, text) = number(text, 2)?;
    let (minute, text) = number(text, 2)?;
    let (second, text) = number(text, 2)?;
    let days = days_since_1970(year, month, day)?;
    let sound = text == b"Z" && hour < 24 && minute < 60 && second < 61;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    sound.then_some((Timestamp(seconds), rest))
}

fn number(text: &[u8], digits: usize) -> Option<(u64, &[u8])> {
    let (digits, rest) = text.split_at_checked(digits)?;
    let all = digits.iter().all(u8::is_ascii_digit);
    let number = digits.iter().fold(0, |n, d| 10 * n + u64::from(d & 0xf));
    all.then_some((number, rest))
}

/// Days of the Gregorian calendar; dates before 1970 are none that a certificate of ours has.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let before = *BEFORE.get(usize::try_from(month.checked_sub(1)?).ok()?)?;
    if year < 1970 || !(1..=31).contains(&day) {
        return None;
    }
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let whole = 365 * (year - 1970) + leaps(year - 1) - leaps(1969);
    Some(whole + before + u64::from(leap(year) && month > 2) + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use heda_crypto::random::Randomness;
    use std::time::Duration;

    #[test]
    fn dates_are_those_that_a_certificate_was_made_with() {
        let mut rng = Randomness::seeded(1).fork("dates", 0).unwrap();
        // Leap days, both encodings of years, and the first day of a century.
        for (now, days) in [
            (1_709_164_800, 1),
            (1_800_000_000, 825),
            (2_524_607_999, 30),
            (4_102_444_800, 3650),
        ] {
            let validity_of = Duration::from_secs(days * 86_400);
            let made = Identity::generate("a", Timestamp(now), validity_of, &mut rng).unwrap();
            let (first, last) = validity(&made.chain()[0]).unwrap();
            assert_eq!(first.0, now - 3600);
            assert_eq!(last.0, now + days * 86_400);
        }
    }

    #[test]
    fn other_bytes_have_no_dates() {
        let mut rng = Randomness::seeded(1).fork("dates", 1).unwrap();
        let year = Duration::from_secs(31_536_000);
        let made = Identity::generate("a", Timestamp(1_800_000_000), year, &mut rng).unwrap();
        let whole = made.chain()[0].to_vec();
        for length in 0..whole.len() {
            assert_eq!(validity(&whole[..length]), None, "{length}");
        }
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0xff;
            // Anything but a panic.
            let _ = validity(&damaged);
        }
    }
}
