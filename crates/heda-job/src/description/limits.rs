//! Values of a job that have a bound of their own. Each bound is stated here once; files, options,
//! builder, Python and wire read these types.

use heda_learn::reference::{FileValue, Form};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Share of the rows that is held out for evaluation, kept in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u16);

/// A number that is not a share of rows to hold out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the share of held-out rows is {0}; it must be 0 to {most}", most = Share::MOST)]
pub struct BadShare(String);

impl Share {
    /// No rows are held out.
    pub const NONE: Self = Self(0);
    /// The largest share: some rows must train.
    pub const MOST: Self = Self(900);
    /// A fifth: the default of every job.
    pub const USUAL: Self = Self(200);

    /// A share, rounded to thousandths.
    ///
    /// # Errors
    /// Unless it is 0 to [`Share::MOST`].
    pub fn new(share: f64) -> Result<Self, BadShare> {
        match (0.0..=Self::MOST.get()).contains(&share) {
            true => Ok(Self((share * 1000.0).round() as u16)),
            false => Err(BadShare(share.to_string())),
        }
    }

    /// The share.
    pub fn get(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// The share in thousandths.
    pub fn permille(self) -> u64 {
        self.0.into()
    }

    /// So much of a number of rows, rounded down.
    pub fn of(self, rows: u64) -> u64 {
        rows.saturating_mul(self.permille()) / 1000
    }

    /// Whether any rows are held out.
    pub fn is_some(self) -> bool {
        self > Self::NONE
    }
}

impl Default for Share {
    fn default() -> Self {
        Self::USUAL
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl FromStr for Share {
    type Err = BadShare;

    fn from_str(text: &str) -> Result<Self, BadShare> {
        let share = text.parse().map_err(|_| BadShare(text.to_owned()))?;
        Self::new(share)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.get())
    }
}

impl FileValue for Share {
    fn form() -> Form {
        Form::number(Self::NONE.get()..=Self::MOST.get())
    }
}

/// What a party or a data set is called: something that fits into a log line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// Most characters.
    const LONGEST: usize = 100;

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that cannot name anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a name has 1 to {most} characters, none of them invisible", most = Name::LONGEST)]
pub struct NoName;

impl FromStr for Name {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        let fits = (1..=Self::LONGEST).contains(&text.chars().count())
            && text.trim() == text
            && !text.contains(char::is_control);
        fits.then(|| Self(text.to_owned())).ok_or(NoName)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl FileValue for Name {
    fn form() -> Form {
        let words = format!(
            "a name in quotes, 1 to {} visible characters",
            Self::LONGEST
        );
        Form::Text(words, None)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_one_bound_in_the_unit_that_people_write() {
        assert_eq!(Share::new(0.2), Ok(Share::USUAL));
        assert_eq!(Share::new(0.9), Ok(Share::MOST));
        assert_eq!("0".parse(), Ok(Share::NONE));
        assert_eq!(Share::new(0.8304).unwrap().of(1000), 830);
        for wrong in ["0.95", "0.9001", "1", "-0.1", "NaN", "inf", "a fifth"] {
            let words = wrong.parse::<Share>().unwrap_err().to_string();
            assert!(words.ends_with("it must be 0 to 0.9"), "{words}");
            assert!(words.contains(wrong), "{words}");
        }
    }

    #[test]
    fn a_share_is_written_as_it_is_read() {
        for permille in 0..=900u64 {
            let share = Share::new(permille as f64 / 1000.0).unwrap();
            assert_eq!(share.permille(), permille);
            let text = serde_json::to_string(&share).unwrap();
            assert_eq!(serde_json::from_str::<Share>(&text).unwrap(), share);
            assert_eq!(share.to_string().parse(), Ok(share));
        }
        assert!(serde_json::from_str::<Share>("0.901").is_err());
    }
}
