//! How values are written.

use super::Key;
use crate::loss::LossKind;
use crate::optimise::{Iterations, Method};
use crate::schema::{LevelCoding, Outside};
use crate::score;
use heda_dp::account::Mechanism;
use heda_dp::epsilon::{Epsilon, LARGEST};
use heda_dp::gdp::Delta;
use serde::Deserialize;
use serde::de::value::{Error, MapDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;

/// How a value is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// A text in quotes: what it says, and its pattern where it has one.
    Text(String, Option<String>),
    /// A number within bounds.
    Number {
        /// Whether it has no fraction.
        whole: bool,
        /// The least one.
        least: Bound<f64>,
        /// The largest one.
        most: Bound<f64>,
    },
    /// `true` or `false`.
    Flag,
    /// One of these words.
    OneOf(Vec<String>),
    /// In one of several ways.
    Any(Vec<Self>),
    /// A list, of this length if one is given.
    List(Box<Self>, Option<usize>),
    /// A table with these keys.
    Table(Vec<Key>),
    /// A table of names and numbers above zero; if there are words, `name` is one of them.
    Numbers(Vec<String>),
}

/// A type that the value of a key becomes.
pub trait FileValue {
    /// Whether a file may leave it out.
    const OPTIONAL: bool = false;

    /// How it is written.
    fn form() -> Form;
}

/// The words that an enum is read from.
pub fn words_of<T: DeserializeOwned>() -> Vec<String> {
    let none: StrDeserializer<'_, Error> = "".into_deserializer();
    words_in(T::deserialize(none).err())
}

/// The words that an error offers instead of one that is not known.
fn words_in(refused: Option<Error>) -> Vec<String> {
    let refused = refused.map(|e| e.to_string()).unwrap_or_default();
    let known = refused.split('`').skip(3).step_by(2);
    known.map(str::to_owned).collect()
}

/// The names of the methods, each of which is a table of its own.
fn methods() -> Vec<String> {
    let none = MapDeserializer::new([("name", "")].into_iter());
    words_in(Method::deserialize(none).err())
}

/// The form of enums that are read from words.
#[macro_export]
macro_rules! words {
    ($($type:ty),+ $(,)?) => {$(
        impl $crate::reference::FileValue for $type {
            fn form() -> $crate::reference::Form {
                $crate::reference::Form::OneOf($crate::reference::words_of::<Self>())
            }
        }
    )+};
}

/// The forms of types that are written in one way.
macro_rules! forms {
    ($($type:ty => $form:expr),+ $(,)?) => {$(
        impl FileValue for $type {
            fn form() -> Form {
                $form
            }
        }
    )+};
}

words!(
    score::ScoringMethod,
    LossKind,
    Mechanism,
    Outside,
    LevelCoding
);

forms! {
    String => Form::text("a text in quotes"),
    PathBuf => Form::text("a path in quotes"),
    SocketAddr => Form::text("an IP address with a port, in quotes"),
    bool => Form::Flag,
    u32 => Form::whole(0.0..),
    u64 => Form::whole(0.0..),
    NonZeroU32 => Form::whole(1.0..),
    NonZeroU64 => Form::whole(1.0..),
    f64 => Form::number(..),
    Epsilon => Form::number((Bound::Excluded(0.0), Bound::Included(LARGEST as f64))),
    Delta => Form::number((Bound::Excluded(0.0), Bound::Excluded(1.0))),
    Iterations => Form::whole(1.0..=f64::from(Iterations::MOST)),
    Method => Form::Numbers(methods()),
    BTreeMap<String, u64> => Form::Numbers(Vec::new()),
}

impl<T: FileValue> FileValue for Option<T> {
    const OPTIONAL: bool = true;

    fn form() -> Form {
        T::form()
    }
}

impl<T: FileValue> FileValue for Vec<T> {
    fn form() -> Form {
        Form::List(Box::new(T::form()), None)
    }
}

impl Form {
    /// A text of which this is said, without a pattern.
    pub fn text(words: &str) -> Self {
        Self::Text(words.to_owned(), None)
    }

    /// A number within bounds.
    pub fn number(range: impl RangeBounds<f64>) -> Self {
        Self::Number {
            whole: false,
            least: range.start_bound().cloned(),
            most: range.end_bound().cloned(),
        }
    }

    /// A whole number within bounds.
    pub fn whole(range: impl RangeBounds<f64>) -> Self {
        Self::Number {
            whole: true,
            least: range.start_bound().cloned(),
            most: range.end_bound().cloned(),
        }
    }

    /// In words, as part of a sentence: "it must be …".
    pub fn words(&self) -> String {
        match self {
            Self::Text(words, _) => words.clone(),
            Self::Number { whole, least, most } => {
                let number = if *whole { "a whole number" } else { "a number" };
                number.to_owned() + &between(*least, *most)
            }
            Self::Flag => "true or false".to_owned(),
            Self::OneOf(words) if words.len() == 1 => quoted(words),
            Self::OneOf(words) => format!("one of {}", quoted(words)),
            Self::Any(forms) => {
                let forms: Vec<String> = forms.iter().map(Self::words).collect();
                forms.join(", or ")
            }
            Self::List(entry, None) => format!("a list, each entry {}", entry.words()),
            Self::List(entry, Some(length)) => {
                format!("a list of {length}, each {}", entry.words())
            }
            Self::Table(keys) => {
                let names: Vec<String> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
                format!("a table with {}", names.join(", "))
            }
            Self::Numbers(words) if words.is_empty() => "a table of names and numbers".to_owned(),
            Self::Numbers(words) => format!("a table whose `name` is one of {}", quoted(words)),
        }
    }

    pub(super) fn json_schema(&self) -> Json {
        match self {
            Self::Text(_, None) => json!({ "type": "string" }),
            Self::Text(_, Some(pattern)) => json!({ "type": "string", "pattern": pattern }),
            Self::Number { whole, least, most } => {
                let mut schema = json!({ "type": if *whole { "integer" } else { "number" } });
                bound(&mut schema, *least, "minimum", "exclusiveMinimum");
                bound(&mut schema, *most, "maximum", "exclusiveMaximum");
                schema
            }
            Self::Flag => json!({ "type": "boolean" }),
            Self::OneOf(words) => json!({ "enum": words }),
            Self::Any(forms) => {
                let forms: Vec<Json> = forms.iter().map(Self::json_schema).collect();
                json!({ "anyOf": forms })
            }
            Self::List(entry, length) => {
                let mut schema = json!({ "type": "array", "items": entry.json_schema() });
                if let Some(length) = length {
                    schema["minItems"] = (*length).into();
                    schema["maxItems"] = (*length).into();
                }
                schema
            }
            Self::Table(keys) => super::page::object(keys),
            Self::Numbers(words) => {
                let number = json!({ "type": "number" });
                let mut schema = json!({ "type": "object", "additionalProperties": number });
                if !words.is_empty() {
                    schema["properties"] = json!({ "name": { "enum": words } });
                    schema["required"] = json!(["name"]);
                }
                schema
            }
        }
    }
}

fn quoted(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    words.join(", ")
}

fn between(least: Bound<f64>, most: Bound<f64>) -> String {
    use Bound::{Excluded, Included, Unbounded};
    match (least, most) {
        (Unbounded, Unbounded) => String::new(),
        (Included(least), Unbounded) => format!(" from {least} upwards"),
        (Excluded(least), Unbounded) => format!(" above {least}"),
        (Included(least), Included(most)) => format!(" from {least} to {most}"),
        (Excluded(least), Included(most)) => format!(" above {least} and at most {most}"),
        (Included(least), Excluded(most)) => format!(" from {least} and below {most}"),
        (Excluded(least), Excluded(most)) => format!(" above {least} and below {most}"),
        (Unbounded, Included(most)) => format!(" of at most {most}"),
        (Unbounded, Excluded(most)) => format!(" below {most}"),
    }
}

fn bound(schema: &mut Json, bound: Bound<f64>, included: &str, excluded: &str) {
    let (name, value) = match bound {
        Bound::Included(value) => (included, value),
        Bound::Excluded(value) => (excluded, value),
        Bound::Unbounded => return,
    };
    // Whole bounds are written without a fraction.
    schema[name] = match value.fract() == 0.0 {
        true => json!(value as i64),
        false => json!(value),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_that_the_code_reads() {
        assert_eq!(words_of::<Outside>(), ["refuse", "clip"]);
        assert_eq!(
            words_of::<score::ScoringMethod>().len(),
            score::ScoringMethod::ALL.len()
        );
        let Form::Numbers(names) = Method::form() else {
            panic!("a method is a table");
        };
        assert!(names.contains(&"lbfgs".to_owned()), "{names:?}");
    }

    #[test]
    fn bounds_are_the_same_in_words_and_in_a_schema() {
        for (form, words, schema) in [
            (
                u32::form(),
                "a whole number from 0 upwards",
                json!({ "minimum": 0 }),
            ),
            (
                Form::number(0.0..=0.9),
                "a number from 0 to 0.9",
                json!({ "minimum": 0, "maximum": 0.9 }),
            ),
            (
                Delta::form(),
                "a number above 0 and below 1",
                json!({ "exclusiveMinimum": 0, "exclusiveMaximum": 1 }),
            ),
        ] {
            assert_eq!(form.words(), words);
            let mut found = form.json_schema();
            found.as_object_mut().unwrap().remove("type");
            assert_eq!(found, schema, "{words}");
        }
    }
}
