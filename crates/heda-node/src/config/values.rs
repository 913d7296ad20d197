//! Values that are checked while a file is read, so that an error points at its line.

pub use heda_job::description::{Name, NoName, Share};
use heda_job::proposal::ClassWeight;
use heda_learn::schema::Schema;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
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

/// How columns are published over a network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PublishedBy {
    /// With Laplace noise: the only mechanism with a proven epsilon for linked rows.
    #[default]
    Laplace,
}

/// How the penalty is found, where it is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PenaltyValue {
    /// Several are tried, and one is chosen by held-out rows.
    Auto,
}

/// How much the rows of each class count.
#[derive(Debug, Clone, PartialEq)]
pub enum ClassWeightValue {
    /// Every class as much as the others together.
    Balanced,
    /// So much, by name; 1 for a class that is not named.
    ByName(BTreeMap<String, f64>),
}

/// A weight for a class that the schema does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("class_weight names {name:?}, and the classes are {classes}")]
pub struct NoClass {
    name: String,
    classes: String,
}

impl ClassWeightValue {
    /// The weights in the order of the schema's classes; a class that is not named counts 1.
    ///
    /// # Errors
    /// If the schema has no class of a name.
    pub fn of(&self, schema: &Schema) -> Result<ClassWeight, NoClass> {
        let Self::ByName(weights) = self else {
            return Ok(ClassWeight::Balanced);
        };
        let classes = schema.label().classes();
        let mut all = vec![1.0; classes.len()];
        for (name, weight) in weights {
            let Some(class) = classes.iter().position(|class| class == name) else {
                return Err(NoClass {
                    name: name.clone(),
                    classes: classes.join(", "),
                });
            };
            all[class] = *weight;
        }
        Ok(ClassWeight::Given(all))
    }
}

impl<'de> Deserialize<'de> for ClassWeightValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ClassWeightsVisitor)
    }
}

struct ClassWeightsVisitor;

impl<'de> Visitor<'de> for ClassWeightsVisitor {
    type Value = ClassWeightValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"balanced\", or a table of classes and weights such as { ill = 2.0 }")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<ClassWeightValue, E> {
        match word {
            "balanced" => Ok(ClassWeightValue::Balanced),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(word), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ClassWeightValue, A::Error> {
        let mut weights = BTreeMap::new();
        while let Some((class, weight)) = map.next_entry::<String, Positive>()? {
            weights.insert(class, weight.get());
        }
        Ok(ClassWeightValue::ByName(weights))
    }
}

/// Whole seconds, from one to a week.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecondsValue(u64);

impl SecondsValue {
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

impl TryFrom<u64> for SecondsValue {
    type Error = NoSeconds;

    fn try_from(seconds: u64) -> Result<Self, NoSeconds> {
        match seconds {
            1..=604_800 => Ok(Self(seconds)),
            other => Err(NoSeconds(other)),
        }
    }
}

impl<'de> Deserialize<'de> for SecondsValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::try_from(u64::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// How many features are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IotaValue {
    /// All of them, so that nothing is published.
    All,
    /// This many, the best ones.
    Best(u64),
    /// As many as the goal under `[auto]` asks for.
    Auto,
}

impl<'de> Deserialize<'de> for IotaValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(IotaVisitor)
    }
}

struct IotaVisitor;

impl Visitor<'_> for IotaVisitor {
    type Value = IotaValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of features, `all` or `auto`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<IotaValue, E> {
        match text {
            "all" => Ok(IotaValue::All),
            "auto" => Ok(IotaValue::Auto),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<IotaValue, E> {
        Ok(IotaValue::Best(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<IotaValue, E> {
        u64::try_from(number)
            .map(IotaValue::Best)
            .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
    }
}
