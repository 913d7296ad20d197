//! How well the accuracy of a private job's model will be known: said before anything is spent.

use super::Privacy;
use heda_learn::private::PrivatePlan;
use heda_learn::private::evaluation::{RightRows, WIDE};
use serde::Serialize;
use std::fmt;

/// The accuracy that stands for all models: the interval of a better one is narrower.
const EXAMPLE: f64 = 0.85;
/// Nobody is told to hold out more.
const MOST_ROWS: u64 = 1 << 24;

/// What the counts of held-out rows will say about a model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Foreseen {
    /// Held-out rows of all providers, about.
    pub held_out: u64,
    /// The accuracy that the interval is an example for.
    pub accuracy: f64,
    /// Half of the 95 % interval, as a share of rows.
    pub half_width: f64,
    /// With how many held-out rows it would be ±5 points, if it is wider.
    pub rows_needed: Option<u64>,
}

impl Privacy {
    /// What counts of so many held-out rows of so many providers will say; `None` if there are none.
    pub fn foresee(&self, plan: &PrivatePlan, providers: usize, held_out: u64) -> Option<Foreseen> {
        let half = |rows: u64| {
            let right = RightRows {
                estimate: EXAMPLE * rows as f64,
                deviation: self.noise_in_right(plan, providers, rows),
                rows,
            };
            right.half_width()
        };
        let half_width = half(held_out)?;
        let wide = |rows: u64| half(rows).is_some_and(|half| half > WIDE);
        Some(Foreseen {
            held_out,
            accuracy: EXAMPLE,
            half_width,
            rows_needed: wide(held_out).then(|| least(held_out, |rows| !wide(rows))),
        })
    }
}

/// The least number above this one for which something holds that holds from there on.
fn least(above: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (above, above.max(1) * 2);
    while high < MOST_ROWS && !holds(high) {
        (low, high) = (high, high * 2);
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        *(if holds(middle) { &mut high } else { &mut low }) = middle;
    }
    high
}

impl fmt::Display for Foreseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "about {} held-out rows tell an accuracy near {:.0} % to ±{:.1} points (95 %)",
            self.held_out,
            100.0 * self.accuracy,
            100.0 * self.half_width
        )?;
        match self.rows_needed {
            None => Ok(()),
            Some(rows) => write!(
                f,
                ". These rows are too few: about {rows} tell it to ±5 points. Hold out more, or none"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Share;
    use heda_dp::gdp::Delta;

    #[test]
    fn what_is_foreseen_says_how_many_rows_would_do() {
        let delta = Delta::new(1e-5).unwrap();
        let privacy = Privacy::new("1".parse().unwrap(), delta, 552);
        let plan = privacy.plan(10).unwrap();
        let few = privacy.foresee(&plan, 3, 138).unwrap();
        assert!(few.half_width > 0.06 && few.half_width < 0.11, "{few:?}");
        let needed = few.rows_needed.unwrap();
        assert!((200..600).contains(&needed), "{few:?}");
        let words = few.to_string();
        assert!(words.contains("too few"), "{words}");
        assert!(words.starts_with("about 138 held-out rows"), "{words}");
        let enough = privacy.foresee(&plan, 3, needed).unwrap();
        assert_eq!(enough.rows_needed, None);
        assert!(!enough.to_string().contains("too few"));
        assert!(
            privacy
                .foresee(&plan, 3, needed - 1)
                .unwrap()
                .rows_needed
                .is_some()
        );
        assert_eq!(privacy.foresee(&plan, 3, 0), None);
        // Ten providers add more noise than three; one of them may collude in either case.
        let more = privacy.noise_in_right(&plan, 3, 138) / privacy.noise_in_right(&plan, 10, 138);
        assert!(
            (more - (1.5f64 / (10.0 / 9.0)).sqrt()).abs() < 1e-3,
            "{more}"
        );
        assert_eq!(Privacy::held_out_beside(552, Share::USUAL), 138);
        assert_eq!(Privacy::held_out_beside(552, Share::NONE), 0);
    }
}
