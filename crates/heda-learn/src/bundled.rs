//! The four public data sets of the Heda paper, inside the library: an installed program needs no
//! files. `datasets/README.md` has their sources and licence; `bundled/` of this crate is a packed
//! copy of that folder, because a package holds its own files only. A test compares both.

use crate::data::Dataset;
use crate::schema::Schema;
use crate::spelling::UnknownWord;
use crate::table::{ReadError, ReadReport, TableReader};
use flate2::read::GzDecoder;
use std::fmt;
use std::io::Read;
use std::str::FromStr;

/// A bundled data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bundle {
    /// Breast Cancer Wisconsin (Original).
    Bcwd,
    /// Adult, also known as Census Income.
    Adult,
    /// Credit Approval, the paper's CAD.
    Crx,
    /// Car Evaluation.
    Car,
}

/// How values become numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Coding {
    /// As in the paper: categories as integers in alphabetical order.
    Paper,
    /// Ordinal levels in their meaningful order, categories one-hot: more accurate.
    Natural,
}

macro_rules! schema_text {
    ($file:literal) => {
        include_str!(concat!("../bundled/", $file, ".toml"))
    };
}

macro_rules! packed {
    ($file:literal) => {
        include_bytes!(concat!("../bundled/", $file, ".csv.gz"))
    };
}

impl Bundle {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bcwd, Self::Adult, Self::Crx, Self::Car];

    /// The short name that commands take.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bcwd => "bcwd",
            Self::Adult => "adult",
            Self::Crx => "crx",
            Self::Car => "car",
        }
    }

    /// The full name.
    pub fn title(self) -> &'static str {
        match self {
            Self::Bcwd => "Breast Cancer Wisconsin (Original)",
            Self::Adult => "Adult (Census Income)",
            Self::Crx => "Credit Approval",
            Self::Car => "Car Evaluation",
        }
    }

    /// What a class is called by people, where the file only has a code for it.
    pub fn class_in_words(self, class: &str) -> &str {
        match (self, class) {
            (Self::Bcwd, "2") => "benign",
            (Self::Bcwd, "4") => "malignant",
            (_, class) => class,
        }
    }

    /// The schema as a text with comments.
    pub fn schema_text(self, coding: Coding) -> &'static str {
        match (self, coding) {
            (Self::Bcwd, Coding::Paper) => schema_text!("bcwd.paper"),
            (Self::Bcwd, Coding::Natural) => schema_text!("bcwd.natural"),
            (Self::Adult, Coding::Paper) => schema_text!("adult.paper"),
            (Self::Adult, Coding::Natural) => schema_text!("adult.natural"),
            (Self::Crx, Coding::Paper) => schema_text!("crx.paper"),
            (Self::Crx, Coding::Natural) => schema_text!("crx.natural"),
            (Self::Car, Coding::Paper) => schema_text!("car.paper"),
            (Self::Car, Coding::Natural) => schema_text!("car.natural"),
        }
    }

    /// The schema.
    pub fn schema(self, coding: Coding) -> Schema {
        let file = format!("{}.{coding}.toml", self.name());
        Schema::parse(self.schema_text(coding), &file).expect("a bundled schema is tested")
    }

    /// The CSV file as a stream.
    pub fn csv(self) -> impl Read {
        let packed: &'static [u8] = match self {
            Self::Bcwd => packed!("bcwd"),
            Self::Adult => packed!("adult"),
            Self::Crx => packed!("crx"),
            Self::Car => packed!("car"),
        };
        GzDecoder::new(packed)
    }

    /// The encoded rows, and what happened to them on the way.
    pub fn table(self, coding: Coding) -> Result<(Dataset, ReadReport), ReadError> {
        let file = format!("{}.csv (bundled)", self.name());
        TableReader::new(&self.schema(coding)).read_csv(self.csv(), &file)
    }
}

impl fmt::Display for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Bundle {
    type Err = UnknownWord;

    fn from_str(name: &str) -> Result<Self, UnknownWord> {
        let found = Self::ALL.into_iter().find(|bundle| bundle.name() == name);
        found.ok_or_else(|| UnknownWord::Name {
            what: "bundled data set",
            name: name.to_owned(),
            choices: "bcwd, adult, crx, car",
        })
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paper => "paper",
            Self::Natural => "natural",
        })
    }
}

impl FromStr for Coding {
    type Err = UnknownWord;

    fn from_str(name: &str) -> Result<Self, UnknownWord> {
        match name {
            "paper" => Ok(Self::Paper),
            "natural" => Ok(Self::Natural),
            _ => Err(UnknownWord::Name {
                what: "coding",
                name: name.to_owned(),
                choices: "paper, natural",
            }),
        }
    }
}

#[cfg(test)]
mod tests;
