//! The column to be learned: one of several classes, or a number within public bounds.

use super::check::{Checked, Part, at, check_name};
use super::raw::{OneOrMany, RawLabel, RawLabelKind, RawLabelMissing};
use super::{Bounds, MAX_LEVELS, Outside, SchemaFault, Typical};
use std::collections::HashSet;

/// The column to be learned.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    pub(super) column: String,
    pub(super) classes: Vec<String>,
    pub(super) positive: Vec<String>,
    pub(super) number: Option<LabelNumber>,
    pub(super) drop_missing: bool,
}

/// A label that is a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelNumber {
    /// Between which public bounds it lies.
    pub bounds: Bounds,
    /// What happens to a number outside them.
    pub outside: Outside,
    /// Publicly known mean and deviation, if the schema states them.
    pub typical: Option<Typical>,
}

impl LabelNumber {
    /// A model on encoded rows that gives the place between the bounds as one that gives the
    /// number itself.
    pub fn to_units(&self, beta: &[f64]) -> Vec<f64> {
        let mut units: Vec<f64> = beta.iter().map(|b| b * self.bounds.range()).collect();
        if let Some(bias) = units.first_mut() {
            *bias += self.bounds.lower();
        }
        units
    }
}

impl Label {
    /// Name of the column.
    pub fn column(&self) -> &str {
        &self.column
    }

    /// What is to be known of it if it is a number.
    pub fn number(&self) -> Option<&LabelNumber> {
        self.number.as_ref()
    }

    /// The values that the column may have; none if it is a number.
    pub fn values(&self) -> &[String] {
        &self.classes
    }

    /// The values that make a row positive; empty for a label of more than two classes.
    pub fn positive(&self) -> &[String] {
        &self.positive
    }

    /// Whether rows without a label are left out (else the table is refused).
    pub fn drops_missing(&self) -> bool {
        self.drop_missing
    }

    /// Names of the classes that are learned. With positive values there are two, the positive
    /// one last; grouped values are joined by "or". None if the label is a number.
    pub fn classes(&self) -> Vec<String> {
        if self.positive.is_empty() {
            return self.classes.clone();
        }
        let group = |positive: bool| {
            let values = self.classes.iter();
            let members = values.filter(|&v| self.positive.contains(v) == positive);
            members.cloned().collect::<Vec<_>>().join(" or ")
        };
        vec![group(false), group(true)]
    }

    /// How many models tell what there is to tell: one for two classes or for a number, otherwise
    /// one a class.
    pub fn models(&self) -> usize {
        match self.classes().len() {
            0 | 2 => 1,
            classes => classes,
        }
    }

    /// Index of the class of the value at `position` of [`Label::values`].
    pub(crate) fn class_of(&self, position: usize) -> u32 {
        if self.positive.is_empty() {
            position as u32
        } else {
            u32::from(self.positive.contains(&self.classes[position]))
        }
    }
}

pub(super) fn check_label(raw: RawLabel, markers: &[String]) -> Checked<Label> {
    let here = |(fault, field)| at(fault, [Part::Key("label"), Part::Key(field)]);
    check_name("label column", &raw.column).map_err(|f| here((f, "column")))?;
    let checked = match raw.kind {
        RawLabelKind::Classes => of_classes(raw, markers),
        RawLabelKind::Numeric => of_numbers(raw),
    };
    checked.map_err(here)
}

/// A fault, with the field that it lies in.
type InLabel<T> = Result<T, (SchemaFault, &'static str)>;

fn unused(raw: &RawLabel, kind: &'static str, field: &'static str) -> (SchemaFault, &'static str) {
    let column = raw.column.clone();
    let fault = SchemaFault::FieldUnused {
        column,
        kind,
        field,
    };
    (fault, field)
}

fn of_classes(raw: RawLabel, markers: &[String]) -> InLabel<Label> {
    let numeric = [
        ("bounds", raw.bounds.is_some()),
        ("outside", raw.outside.is_some()),
        ("typical", raw.typical.is_some()),
    ];
    if let Some((field, _)) = numeric.into_iter().find(|(_, given)| *given) {
        return Err(unused(&raw, "class", field));
    }
    check_classes(&raw.classes, markers).map_err(|f| (f, "classes"))?;
    let positive = match raw.positive {
        None => Vec::new(),
        Some(OneOrMany::One(value)) => vec![value],
        Some(OneOrMany::Many(values)) if values.is_empty() => {
            return Err((SchemaFault::PositiveNotAPart, "positive"));
        }
        Some(OneOrMany::Many(values)) => values,
    };
    check_positive(&positive, &raw.classes).map_err(|f| (f, "positive"))?;
    Ok(Label {
        column: raw.column,
        classes: raw.classes,
        positive,
        number: None,
        drop_missing: raw.missing == RawLabelMissing::Drop,
    })
}

fn of_numbers(raw: RawLabel) -> InLabel<Label> {
    if !raw.classes.is_empty() {
        return Err(unused(&raw, "numeric", "classes"));
    }
    if raw.positive.is_some() {
        return Err(unused(&raw, "numeric", "positive"));
    }
    let column = raw.column.clone();
    let Some(given) = raw.bounds.as_deref() else {
        let (kind, field) = ("numeric", "bounds");
        let fault = SchemaFault::FieldNeeded {
            column,
            kind,
            field,
        };
        return Err((fault, "column"));
    };
    let &[lower, upper] = given else {
        return Err((SchemaFault::BoundsCount { column }, "bounds"));
    };
    let Some(bounds) = Bounds::new(lower, upper) else {
        let fault = match lower >= upper {
            true => SchemaFault::BoundsReversed {
                column,
                lower,
                upper,
            },
            false => SchemaFault::BoundsNotFinite { column },
        };
        return Err((fault, "bounds"));
    };
    if let Some(typical) = raw.typical.filter(|typical| !typical.is_possible(bounds)) {
        let fault = SchemaFault::TypicalImpossible { column, typical };
        return Err((fault, "typical"));
    }
    Ok(Label {
        column,
        classes: Vec::new(),
        positive: Vec::new(),
        number: Some(LabelNumber {
            bounds,
            outside: raw.outside.unwrap_or_default(),
            typical: raw.typical,
        }),
        drop_missing: raw.missing == RawLabelMissing::Drop,
    })
}

fn check_classes(classes: &[String], markers: &[String]) -> Result<(), SchemaFault> {
    if classes.len() < 2 {
        return Err(SchemaFault::TooFewClasses(classes.len()));
    }
    if classes.len() > MAX_LEVELS {
        return Err(SchemaFault::TooManyClasses(classes.len()));
    }
    let mut seen = HashSet::new();
    for class in classes {
        check_name("class", class)?;
        if !seen.insert(class) {
            return Err(SchemaFault::DuplicateClass(class.clone()));
        }
        if markers.contains(class) {
            return Err(SchemaFault::ClassIsMarker(class.clone()));
        }
    }
    Ok(())
}

fn check_positive(positive: &[String], classes: &[String]) -> Result<(), SchemaFault> {
    if positive.is_empty() {
        return match classes.len() {
            2 => Err(SchemaFault::NoPositive),
            _ => Ok(()),
        };
    }
    if let Some(unknown) = positive.iter().find(|&value| !classes.contains(value)) {
        return Err(SchemaFault::PositiveUnknown(unknown.clone()));
    }
    let distinct: HashSet<_> = positive.iter().collect();
    if distinct.len() != positive.len() || distinct.len() == classes.len() {
        return Err(SchemaFault::PositiveNotAPart);
    }
    Ok(())
}
