//! Single values that stand in files, in messages and on the command line.

use super::text::of_text;
use crate::driver::{Target, Verdict};
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Delta;
use heda_job::description::Share;
use heda_job::engine::Engine;
use heda_job::proposal::JobId;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::optimise::Iterations;
use heda_learn::partition::Iota;
use heda_learn::score::ScoringMethod;
use std::fmt::Display;
use std::str::FromStr;

/// Reads a value; whatever is accepted is printed and read again as the same.
fn value<T: FromStr + Display + PartialEq + 'static>() -> Target {
    of_text(|text| {
        let read = text.parse::<T>();
        if let Ok(value) = &read {
            assert!(
                value
                    .to_string()
                    .parse()
                    .is_ok_and(|again: T| again == *value)
            );
        }
        Verdict::from(read)
    })
}

pub(super) fn delta() -> Target {
    value::<Delta>()
}

pub(super) fn epsilon() -> Target {
    value::<Epsilon>()
}

pub(super) fn job_name() -> Target {
    value::<JobId>()
}

pub(super) fn iota() -> Target {
    value::<Iota>()
}

pub(super) fn iterations() -> Target {
    of_text(|text| {
        let read = text.parse::<Iterations>();
        if let Ok(iterations) = read {
            let again = u32::from(iterations).to_string().parse();
            assert!(again.is_ok_and(|again: Iterations| again == iterations));
        }
        Verdict::from(read)
    })
}

pub(super) fn share() -> Target {
    value::<Share>()
}

/// Names of things that are built in.
pub(super) fn names() -> Target {
    of_text(|text| {
        let known = [
            text.parse::<Engine>().is_ok(),
            text.parse::<ScoringMethod>().is_ok(),
            text.parse::<Bundle>().is_ok(),
            text.parse::<Coding>().is_ok(),
            text.parse::<heda_learn::table::TextEncoding>().is_ok(),
            text.parse::<heda_learn::table::SeparatorMark>().is_ok(),
            text.parse::<heda_node::config::Name>().is_ok(),
        ];
        match known.contains(&true) {
            true => Verdict::Accepted,
            false => Verdict::Rejected,
        }
    })
}
