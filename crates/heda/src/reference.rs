//! Every key of the files that people write, as a page and as JSON schemas.

use heda_learn::reference::FileKeys;
use heda_learn::schema::SCHEMA_KEYS;
use heda_node::config::{JOB_KEYS, PROVIDER_KEYS};
use serde::Serialize;

/// A file that people write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum File {
    /// A data user's job.
    Job,
    /// A provider's configuration.
    Provider,
    /// What the columns mean.
    Schema,
}

impl File {
    /// All of them, in the order of the page.
    pub const ALL: [Self; 3] = [Self::Job, Self::Provider, Self::Schema];

    fn keys(self) -> &'static FileKeys {
        match self {
            Self::Job => &JOB_KEYS,
            Self::Provider => &PROVIDER_KEYS,
            Self::Schema => &SCHEMA_KEYS,
        }
    }

    /// Its JSON schema, for editors.
    pub fn json_schema(self) -> impl Serialize {
        self.keys().json_schema()
    }

    /// Its keys as a section of Markdown.
    pub fn markdown(self) -> String {
        self.keys().markdown()
    }
}
