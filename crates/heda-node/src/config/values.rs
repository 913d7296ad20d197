//! Values that are checked while a file is read, so that an error points at its line.

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A finite number above zero.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Positive(f64);

impl Positive {
    /// For defaults in the code.
    pub(super) const fn of(value: f64) -> Self {
        Self(value)
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Positive {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(from)?;
        if value.is_finite() && value > 0.0 {
            return Ok(Self(value));
        }
        Err(D::Error::custom(format!("{value} is not a number above 0")))
    }
}

/// A share of a whole: at least 0, below 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// A share; `None` unless it is at least 0 and below 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..1.0).contains(&value).then_some(Self(value))
    }

    /// For defaults in the code.
    pub(super) const fn of(value: f64) -> Self {
        Self(value)
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(from)?;
        let words = || D::Error::custom(format!("{value} is not at least 0 and below 1"));
        Self::new(value).ok_or_else(words)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.0)
    }
}

/// A number that is zero or more, such as a tolerance.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct NotNegative(f64);

impl NotNegative {
    /// For defaults in the code.
    pub(super) const fn of(value: f64) -> Self {
        Self(value)
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for NotNegative {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(from)?;
        if value.is_finite() && value >= 0.0 {
            return Ok(Self(value));
        }
        Err(D::Error::custom(format!(
            "{value} is not a number of at least 0"
        )))
    }
}

/// How the penalty is found, where it is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Penalty {
    /// Several are tried, and one is chosen by held-out rows.
    Auto,
}

/// How much the rows of each class count.
#[derive(Debug, Clone, PartialEq)]
pub enum ClassWeights {
    /// Every class as much as the others together.
    Balanced,
    /// So much, by name; 1 for a class that is not named.
    ByName(BTreeMap<String, f64>),
}

impl<'de> Deserialize<'de> for ClassWeights {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ClassWeightsVisitor)
    }
}

struct ClassWeightsVisitor;

impl<'de> Visitor<'de> for ClassWeightsVisitor {
    type Value = ClassWeights;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"balanced\", or a table of classes and weights such as { ill = 2.0 }")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<ClassWeights, E> {
        match word {
            "balanced" => Ok(ClassWeights::Balanced),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(word), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ClassWeights, A::Error> {
        let mut weights = BTreeMap::new();
        while let Some((class, weight)) = map.next_entry::<String, Positive>()? {
            weights.insert(class, weight.get());
        }
        Ok(ClassWeights::ByName(weights))
    }
}

/// Whole seconds, from one to a week.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seconds(u64);

impl Seconds {
    /// For defaults in the code.
    pub(super) const fn of(seconds: u64) -> Self {
        Self(seconds)
    }

    /// As a duration.
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

/// A time that is not waited for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} seconds are not between 1 and a week")]
pub struct NoSeconds(u64);

impl TryFrom<u64> for Seconds {
    type Error = NoSeconds;

    fn try_from(seconds: u64) -> Result<Self, NoSeconds> {
        match seconds {
            1..=604_800 => Ok(Self(seconds)),
            other => Err(NoSeconds(other)),
        }
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::try_from(u64::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// What a party is called in a file: something that fits into a log line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
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
#[error("a name has 1 to 100 characters, none of them invisible")]
pub struct NoName;

impl FromStr for Name {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        let fits = (1..=100).contains(&text.chars().count())
            && text.trim() == text
            && !text.contains(char::is_control);
        fits.then(|| Self(text.to_owned())).ok_or(NoName)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.0)
    }
}

/// How many features are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iota {
    /// All of them, so that nothing is published.
    All,
    /// This many, the best ones.
    Best(u64),
    /// As many as the goal under `[auto]` asks for.
    Auto,
}

impl<'de> Deserialize<'de> for Iota {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(IotaVisitor)
    }
}

struct IotaVisitor;

impl Visitor<'_> for IotaVisitor {
    type Value = Iota;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of features, `all` or `auto`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Iota, E> {
        match text {
            "all" => Ok(Iota::All),
            "auto" => Ok(Iota::Auto),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Iota, E> {
        Ok(Iota::Best(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Iota, E> {
        u64::try_from(number)
            .map(Iota::Best)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
    }
}
