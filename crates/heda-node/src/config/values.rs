//! Values that are checked while a file is read, so that an error points at its line.

pub use heda_job::description::{Name, NoName, Share};
use heda_job::proposal::ClassWeight;
use heda_learn::reference::{FileValue, Form};
use heda_learn::schema::Schema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::{Bound, RangeBounds};
use std::time::Duration;

/// Finite numbers within bounds that a file may have.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])+ $name:ident from $least:expr;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
        pub struct $name(f64);

        impl $name {
            /// For defaults in the code.
            pub(super) const fn of(value: f64) -> Self {
                Self(value)
            }

            /// The number.
            pub fn get(self) -> f64 {
                self.0
            }
        }

        impl FileValue for $name {
            fn form() -> Form {
                Form::number(($least, Bound::Unbounded))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let value = f64::deserialize(from)?;
                match value.is_finite() && ($least, Bound::Unbounded).contains(&value) {
                    true => Ok(Self(value)),
                    false => Err(serde::de::Error::custom(format!("{value} is not {}", Self::form().words()))),
                }
            }
        }
    )+};
}

numbers! {
    /// A number above zero.
    Positive from Bound::Excluded(0.0);
    /// A number that is zero or more, such as a tolerance.
    NotNegative from Bound::Included(0.0);
}

/// A count as a default; no count is below 1.
pub(super) const fn count(number: u64) -> NonZeroU64 {
    NonZeroU64::MIN.saturating_add(number.saturating_sub(1))
}

/// How columns are published over a network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PublishedBy {
    /// With Laplace noise: the only mechanism with a proven epsilon for linked rows.
    #[default]
    Laplace,
}

/// How the penalty is found, where it is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PenaltyValue {
    /// Several are tried, and one is chosen by held-out rows.
    Auto,
}

heda_learn::words!(PublishedBy, PenaltyValue);

/// How much the rows of each class count.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClassWeightValue {
    /// All classes have the same weight in total.
    Balanced,
    /// The weight of each row, by class; 1 for a class that is not named.
    #[serde(untagged)]
    ByName(BTreeMap<String, Positive>),
}

impl FileValue for ClassWeightValue {
    fn form() -> Form {
        Form::Any(vec![
            Form::OneOf(vec!["balanced".to_owned()]),
            Form::Numbers(Vec::new()),
        ])
    }
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
            all[class] = weight.get();
        }
        Ok(ClassWeight::Given(all))
    }
}

/// Whole seconds, from one to a week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u64")]
pub struct SecondsValue(u64);

impl SecondsValue {
    /// A week.
    const MOST: u64 = 7 * 24 * 60 * 60;

    /// For defaults in the code.
    pub(super) const fn of(seconds: u64) -> Self {
        Self(seconds)
    }

    /// As a duration.
    pub fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

impl FileValue for SecondsValue {
    fn form() -> Form {
        Form::whole(1.0..=Self::MOST as f64)
    }
}

/// A time that nobody waits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} seconds are not between 1 and a week")]
pub struct NoSeconds(u64);

impl TryFrom<u64> for SecondsValue {
    type Error = NoSeconds;

    fn try_from(seconds: u64) -> Result<Self, NoSeconds> {
        match seconds {
            1..=Self::MOST => Ok(Self(seconds)),
            other => Err(NoSeconds(other)),
        }
    }
}

/// How many features are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IotaValue {
    /// All of them, so that nothing is published.
    All,
    /// As many as the goal under `[auto]` asks for.
    Auto,
    /// This many, the best ones.
    #[serde(untagged)]
    Best(u64),
}

impl FileValue for IotaValue {
    fn form() -> Form {
        let words = ["all", "auto"].map(str::to_owned).to_vec();
        Form::Any(vec![u64::form(), Form::OneOf(words)])
    }
}
