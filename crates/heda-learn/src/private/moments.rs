//! Means and deviations of numbers for which the schema states nothing typical, bought with a part of
//! the budget.
//!
//! A number x in [0, 1] counts as two whole numbers: itself on a grid of 1020 steps, and 3·x(1 − x) on
//! the same grid, both less what an even distribution has, so that a provider without rows adds
//! nought. Where one of them moves far the other does not: whatever two values are exchanged, both
//! together move by no more than 1020 in Euclidean norm, and all columns of a row by √columns times
//! that. x² would do instead of x(1 − x), and cost √2 times as much. Rows of one person count by their
//! mean, which lies between them and therefore moves no further; rounding it down adds at most 1 to
//! each number, for which the allowance, 1024 a column, leaves room.
//!
//! What comes back has noise. It is drawn towards the even distribution by as much as the noise
//! outweighs what is to be expected of columns, and what a deviation may be off by is added to it:
//! too wide a scale costs little, too narrow a one cuts rows off.

use crate::data::{Dataset, RowsError};
use crate::scaling::Centre;
use crate::schema::Schema;
use std::collections::{HashMap, HashSet};

/// Steps of the grid.
const STEPS: i64 = 1020;
/// How much more x(1 − x) counts than x.
const WEIGHT: i64 = 3;
/// What an even distribution has of both: 1020 times ½, and 3·1020 times 1/6.
const EVEN: i64 = 510;
/// By how much one column of a row moves its two sums at most, squared.
const COLUMN_SQUARED: u64 = 1024 * 1024;
/// How far the means of columns, and those of x(1 − x), lie from an even distribution's, squared.
const SPREAD_OF_MEANS: f64 = 1.0 / 12.0;
const SPREAD_WITHIN: f64 = 0.005;
/// No column is taken to deviate by less, in [0, 1].
const LEAST_DEVIATION: f64 = 1e-3;

/// By how much one row, or one person, can move the sums of so many columns, squared.
pub fn moments_sensitivity_squared(columns: u32) -> u64 {
    COLUMN_SQUARED * u64::from(columns)
}

/// The encoded columns whose moments can be bought: numbers, and levels in order, of which the schema
/// says nothing typical.
pub fn unstated(schema: &Schema) -> Vec<usize> {
    let mut start = 0;
    let mut found = Vec::new();
    for column in schema.columns() {
        if column.is_number() && column.typical().is_none() {
            found.push(start);
        }
        start += column.width();
    }
    found
}

/// Both numbers of a value.
fn pair(value: f64) -> [i64; 2] {
    let place = (value.clamp(0.0, 1.0) * STEPS as f64).round() as i64;
    let within = (WEIGHT * place * (STEPS - place) + STEPS / 2) / STEPS;
    [place - EVEN, within - EVEN]
}

/// A provider's sums over its training rows, two numbers for each unstated column. Where `persons`
/// names them, everybody counts once.
///
/// # Errors
/// If not every row has a person, or the rows are of another schema.
pub fn moment_sums(
    schema: &Schema,
    data: &Dataset,
    persons: Option<&[u32]>,
) -> Result<Vec<i64>, RowsError> {
    let columns = unstated(schema);
    let (expected, found) = (schema.width(), data.width());
    if expected != found {
        return Err(RowsError::Width { expected, found });
    }
    let (rows, named) = (data.rows(), persons.map_or(data.rows(), <[u32]>::len));
    if rows != named {
        return Err(RowsError::Persons { rows, named });
    }
    let numbers = |row: usize| {
        let values = columns.iter().map(move |&column| data.row(row)[column]);
        values.flat_map(pair)
    };
    let mut sums = vec![0; 2 * columns.len()];
    let Some(persons) = persons else {
        (0..rows).for_each(|row| add(&mut sums, numbers(row)));
        return Ok(sums);
    };
    let mut by_person: HashMap<u32, (i64, Vec<i64>)> = HashMap::new();
    for (row, person) in persons.iter().enumerate() {
        let fresh = || (0, vec![0; 2 * columns.len()]);
        let (count, own) = by_person.entry(*person).or_insert_with(fresh);
        *count += 1;
        add(own, numbers(row));
    }
    for (count, own) in by_person.into_values() {
        add(&mut sums, own.into_iter().map(|sum| sum.div_euclid(count)));
    }
    Ok(sums)
}

fn add(sums: &mut [i64], numbers: impl Iterator<Item = i64>) {
    sums.iter_mut().zip(numbers).for_each(|(sum, n)| *sum += n);
}

/// A provider's persons, or rows where it names no persons, as one more number beside the sums. Whoever
/// is added or taken away moves it by less than the allowance of a column.
pub fn count_persons(rows: usize, persons: Option<&[u32]>) -> i64 {
    let count = match persons {
        Some(persons) => persons.iter().collect::<HashSet<_>>().len(),
        None => rows,
    };
    STEPS.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX))
}

/// How many persons all providers have, by everybody's count with noise; at least one.
pub fn bought_persons(count: f64) -> f64 {
    (count / STEPS as f64).max(1.0)
}

/// Where the unstated columns lie, by everybody's sums with noise of this variance over so many rows or
/// persons. Of several answers about the same rows the sums are the mean, and so is the noise.
pub fn bought_centres(sums: &[f64], units: f64, variance: f64) -> Vec<Centre> {
    let unit = STEPS as f64 * units.max(1.0);
    let noise = variance / (unit * unit);
    let weight = WEIGHT as f64;
    let centre = |pair: &[f64]| {
        let [mean, within] = [pair[0], pair[1]].map(|sum| sum / unit);
        let mean = 0.5 + mean * SPREAD_OF_MEANS / (SPREAD_OF_MEANS + noise);
        let noise_within = noise / (weight * weight);
        let within = within / weight * SPREAD_WITHIN / (SPREAD_WITHIN + noise_within) + 1.0 / 6.0;
        let mean = mean.clamp(LEAST_DEVIATION, 1.0 - LEAST_DEVIATION);
        let off = ((1.0 - 2.0 * mean).powi(2) * noise + noise_within).sqrt();
        let variance = (mean * (1.0 - mean) - within).max(0.0) + off;
        Centre {
            mean,
            deviation: variance.sqrt().clamp(LEAST_DEVIATION, 0.5),
        }
    };
    sums.chunks_exact(2).map(centre).collect()
}

/// Whether rows can be written by these: a data user may say anything.
pub(super) fn are_sound(centres: &[Centre]) -> bool {
    let sound = |centre: &Centre| {
        (0.0..=1.0).contains(&centre.mean) && (LEAST_DEVIATION..=1.0).contains(&centre.deviation)
    };
    centres.iter().all(sound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundled::{Bundle, Coding};

    /// All exchanges of one value for another, also where rounding a person's mean adds 1 to each.
    #[test]
    fn no_exchange_of_values_moves_both_sums_by_more_than_the_allowance() {
        let pairs: Vec<[i64; 2]> = (0..=STEPS)
            .map(|place| pair(place as f64 / STEPS as f64))
            .collect();
        let most = pairs.iter().flat_map(|a| {
            let moved = |b: &[i64; 2]| {
                let one = |place: usize| ((a[place] - b[place]).abs() + 1).pow(2);
                one(0) + one(1)
            };
            pairs.iter().map(moved).collect::<Vec<_>>()
        });
        let most = most.max().unwrap() as u64;
        assert!(most <= COLUMN_SQUARED, "{most}");
        // The allowance is not much larger than it need be.
        assert!(most > COLUMN_SQUARED * 98 / 100, "{most}");
    }

    #[test]
    fn without_noise_they_are_the_moments_of_the_rows() {
        let schema = Bundle::Bcwd.schema(Coding::Natural);
        let (data, _) = Bundle::Bcwd.table(Coding::Natural).unwrap();
        let columns = unstated(&schema);
        assert_eq!(columns.len(), 9);
        let sums = moment_sums(&schema, &data, None).unwrap();
        let sums: Vec<f64> = sums.into_iter().map(|sum| sum as f64).collect();
        let centres = bought_centres(&sums, 699.0, 0.0);
        for (&column, centre) in columns.iter().zip(&centres) {
            let values = (0..data.rows()).map(|row| data.row(row)[column]);
            let (mut sum, mut squares) = (0.0, 0.0);
            values.for_each(|x| (sum, squares) = (sum + x, squares + x * x));
            let exact = Centre::of_moments(sum / 699.0, squares / 699.0);
            assert!((centre.mean - exact.mean).abs() < 1e-3, "{centre:?}");
            assert!((centre.deviation - exact.deviation).abs() < 3e-3);
        }
        // Much noise leaves the even distribution, or a wider one.
        for centre in bought_centres(&sums, 699.0, 1e15) {
            assert!((centre.mean - 0.5).abs() < 0.05, "{centre:?}");
            assert!(centre.deviation >= 0.28, "{centre:?}");
        }
    }

    /// Shares of noise and of what is to be expected, by hand: unit 10,200, noise 1/48 of it squared.
    #[test]
    fn means_and_deviations_give_way_to_noise_as_the_document_says() {
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
        let found = bought_centres(&[2550.0, -1836.0], 10.0, 10_200f64.powi(2) / 48.0);
        // 1/2 + 1/4 of 4/5; the deviation by the formula of the module.
        close(found[0].mean, 0.7);
        close(found[0].deviation, 0.39937470389125757);
        // A mean at the end keeps a little away from it.
        let found = bought_centres(&[5100.0, -5100.0], 10.0, 10_200f64.powi(2) * 1e-6);
        close(found[0].mean, 0.999);
        close(found[0].deviation, 0.04524921828574651);
        assert_eq!(bought_centres(&[1.0; 4], 10.0, 1.0).len(), 2);
    }

    #[test]
    fn both_numbers_of_a_value_are_rounded() {
        assert_eq!(pair(1.0 / 1020.0), [1 - 510, 3 - 510]);
        assert_eq!(pair(0.5), [0, 765 - 510]);
        assert_eq!((pair(-1.0), pair(2.0)), ([-510; 2], [510, -510]));
        assert_eq!(moments_sensitivity_squared(3), 3 * 1024 * 1024);
    }

    /// One person's rows count once, however many they are.
    #[test]
    fn persons_count_once() {
        let schema = Bundle::Bcwd.schema(Coding::Natural);
        let (data, _) = Bundle::Bcwd.table(Coding::Natural).unwrap();
        let same = data.select_rows(&[3, 3, 3, 7]);
        let once = data.select_rows(&[3, 7]);
        let sums = moment_sums(&schema, &same, Some(&[9, 9, 9, 1])).unwrap();
        assert_eq!(sums, moment_sums(&schema, &once, None).unwrap());
        // So their sums are over as many persons as are counted, and not over as many rows.
        assert_eq!(count_persons(4, Some(&[9, 9, 9, 1])), 2 * STEPS);
        assert_eq!(count_persons(4, None), 4 * STEPS);
        assert_eq!(bought_persons(2.0 * STEPS as f64), 2.0);
        assert_eq!(bought_persons(-7.0), 1.0);
        let short = moment_sums(&schema, &same, Some(&[9, 9]));
        assert_eq!(short, Err(RowsError::Persons { rows: 4, named: 2 }));
    }
}
