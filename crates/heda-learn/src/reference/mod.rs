//! What can be written in a file, key by key. A key is described once, on its field; the reference,
//! the JSON schema for editors, templates and messages all come from there.

mod form;
mod message;
mod page;
mod template;

pub use form::{FileValue, Form, words_of};

/// One key of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// How its value is written.
    pub form: Form,
    /// Whether the file must have it.
    pub required: bool,
    /// The value of a file that does not have the key.
    pub default: Option<toml::Value>,
    /// A value as it is written; a section has none.
    pub example: Option<&'static str>,
    /// What it means: the documentation of its field.
    pub text: &'static str,
}

/// A struct that a file, or a table of a file, becomes; [`described!`](crate::described) makes it.
pub trait Described {
    /// What the table is for.
    const ABOUT: &'static str;

    /// Its keys, in the order of its fields.
    fn keys() -> Vec<Key>;
}

/// A kind of file that people write.
#[derive(Debug, Clone)]
pub struct FileKeys {
    /// Its usual name.
    pub file: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Its keys.
    pub keys: Vec<Key>,
}

impl FileKeys {
    /// The file that becomes a struct.
    pub fn of<T: Described>(file: &'static str) -> Self {
        Self {
            file,
            about: T::ABOUT.trim(),
            keys: T::keys(),
        }
    }
}

impl Key {
    /// Its keys, if it is a section, and whether the file may have several of them.
    pub fn section(&self) -> Option<(&[Self], bool)> {
        match (&self.form, self.example) {
            (Form::Table(keys), None) => Some((keys, false)),
            (Form::List(entry, _), None) => match entry.as_ref() {
                Form::Table(keys) => Some((keys, true)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A value as a file has it.
pub fn written(value: &impl serde::Serialize) -> Option<toml::Value> {
    toml::Value::try_from(value).ok()
}

/// The same as text; a whole number has no fraction.
fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::Float(number) if number.fract() == 0.0 => number.to_string(),
        toml::Value::Float(number) => format!("{number:?}"),
        other => other.to_string(),
    }
}

/// A struct that a file or a part of it becomes, with its keys: the documentation of a field is the
/// text about the key, the type says how the value is written ([`FileValue`]), `#[key(…)]` has an
/// example and `= …` the default. A field without an example is a section. `#[name = "…"]` is for a
/// key that is not called like its field, `#[form(…)]` for a value whose type does not say how it is
/// written. What follows `unlisted` is not in the file.
#[macro_export]
macro_rules! described {
    (
        $(#[doc = $about:literal])+
        #[derive($($derived:tt)*)]
        $vis:vis struct $struct:ident {
            $(
                $(#[doc = $doc:literal])+
                $(#[key($example:literal)])?
                $(#[name = $name:literal])?
                $(#[form($form:expr)])?
                $(#[serde $serde:tt])*
                $field_vis:vis $field:ident: $type:ty $(= $default:expr)?,
            )*
            $(unlisted { $(
                $(#[doc = $other_doc:literal])+
                $other_vis:vis $other:ident: $other_type:ty,
            )* })?
        }
    ) => {
        $(#[doc = $about])+
        #[derive($($derived)*)]
        $vis struct $struct {
            $($(#[doc = $doc])+ $(#[serde $serde])* $field_vis $field: $type,)*
            $($($(#[doc = $other_doc])+ $other_vis $other: $other_type,)*)?
        }

        impl<'de> ::serde::Deserialize<'de> for $struct {
            fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                #[derive(::serde::Deserialize)]
                #[serde(deny_unknown_fields, expecting = "a table")]
                struct Stated {
                    $($(#[serde(rename = $name)])? $field: $crate::described!(@stated $type $(, $default)?),)*
                }
                let stated = Stated::deserialize(from)?;
                Ok(Self {
                    $($field: $crate::described!(@value stated.$field $(, $default)?),)*
                    $($($other: <$other_type>::default(),)*)?
                })
            }
        }

        impl $crate::reference::Described for $struct {
            const ABOUT: &'static str = concat!($($about),+);

            fn keys() -> Vec<$crate::reference::Key> {
                vec![$($crate::reference::Key {
                    name: $crate::described!(@name $field $($name)?),
                    form: $crate::described!(@form $type $(, $form)?),
                    required: $crate::described!(@required $type $(, $default)?),
                    default: $crate::described!(@default $type, [$($example)?] $(, $default)?),
                    example: $crate::described!(@example $($example)?),
                    text: concat!($($doc),+),
                },)*]
            }
        }

        impl $crate::reference::FileValue for $struct {
            fn form() -> $crate::reference::Form {
                $crate::reference::Form::Table(<Self as $crate::reference::Described>::keys())
            }
        }
    };
    (@stated $type:ty) => { $type };
    (@stated $type:ty, $default:expr) => { Option<$type> };
    (@value $stated:expr) => { $stated };
    (@value $stated:expr, $default:expr) => { $stated.unwrap_or_else(|| $default) };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@form $type:ty) => { <$type as $crate::reference::FileValue>::form() };
    (@form $type:ty, $form:expr) => { $form };
    (@required $type:ty) => { !<$type as $crate::reference::FileValue>::OPTIONAL };
    (@required $type:ty, $default:expr) => { false };
    (@default $type:ty, [$($example:literal)?]) => { None };
    (@default $type:ty, [], $default:expr) => { None };
    (@default $type:ty, [$example:literal], $default:expr) => {{
        let default: $type = $default;
        $crate::reference::written(&default)
    }};
    (@example) => { None };
    (@example $example:literal) => { Some($example) };
}
