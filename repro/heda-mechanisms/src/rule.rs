//! The paper's choice of ε as a rule for jobs: what a job with automatic ε goes by.

use crate::auto::automatic_epsilon;
use crate::points::Points;
use heda_dp::epsilon::Epsilon;
use heda_job::register_epsilon_rule;
use std::error::Error;

/// Jobs of this program may have automatic ε from now on.
pub fn register() {
    register_epsilon_rule(epsilons);
}

/// The paper's Algorithm 1 on the values to be published, column by column. A column for which it
/// gives no ε (all values distinct or all equal) is an error that names the column by number.
fn epsilons(values: &[Vec<u32>]) -> Result<Vec<Epsilon>, Box<dyn Error + Send + Sync>> {
    let rows = values.first().map_or(0, Vec::len);
    let by_row = (0..rows).flat_map(|row| values.iter().map(move |column| f64::from(column[row])));
    let points = Points::new(values.len(), by_row.collect())?;
    Ok(automatic_epsilon(&points)?.columns().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_the_epsilon_of_the_papers_algorithm() {
        let columns = [vec![0, 1, 1, 3, 0, 2], vec![5, 5, 0, 5, 9, 9]];
        let by_row = (0..6).flat_map(|row| columns.iter().map(move |c| f64::from(c[row])));
        let points = Points::new(2, by_row.collect()).unwrap();
        let expected = automatic_epsilon(&points).unwrap();
        assert_eq!(epsilons(&columns).unwrap(), expected.columns());
        let alike = epsilons(&[vec![1, 1, 1]]).unwrap_err().to_string();
        assert!(alike.contains("column 0"), "{alike}");
    }
}
