//! A table of counts: two things that are known of every row, each one of a few.

/// How often each pair occurs, and each half alone.
pub(super) struct Contingency {
    counts: Vec<u64>,
    of_first: Vec<u64>,
    of_second: Vec<u64>,
    rows: u64,
}

impl Contingency {
    /// Counts pairs; `first` is below `firsts` and `second` below `seconds` in every row.
    pub(super) fn count(first: &[u32], firsts: usize, second: &[u32], seconds: usize) -> Self {
        let mut table = Self {
            counts: vec![0; firsts * seconds],
            of_first: vec![0; firsts],
            of_second: vec![0; seconds],
            rows: first.len() as u64,
        };
        for (&a, &b) in first.iter().zip(second) {
            let (a, b) = (a as usize, b as usize);
            table.counts[a * seconds + b] += 1;
            table.of_first[a] += 1;
            table.of_second[b] += 1;
        }
        table
    }

    /// Pearson's chi-square statistic of independence; empty rows and columns count nothing.
    pub(super) fn chi_square(&self) -> f64 {
        self.cells()
            .map(|(count, expected)| (count - expected).powi(2) / expected)
            .sum()
    }

    /// Mutual information in nats.
    pub(super) fn mutual_information(&self) -> f64 {
        let rows = self.rows as f64;
        let sum: f64 = self
            .cells()
            .filter(|&(count, _)| count > 0.0)
            .map(|(count, expected)| count / rows * (count / expected).ln())
            .sum();
        sum.max(0.0)
    }

    /// For each value of the second, how well it is told from the rest by the first: the squared
    /// correlation ratio η², which for a class against the rest is chi-square over rows.
    pub(super) fn correlation_ratios(&self) -> impl Iterator<Item = f64> + '_ {
        let rows = self.rows as f64;
        self.of_second.iter().enumerate().map(move |(b, &size)| {
            let share = size as f64 / rows;
            let between: f64 = self
                .of_first
                .iter()
                .enumerate()
                .filter(|&(_, &group)| group > 0)
                .map(|(a, &group)| {
                    let count = self.counts[a * self.of_second.len() + b] as f64;
                    (count - share * group as f64).powi(2) / group as f64
                })
                .sum();
            between / (rows * share * (1.0 - share))
        })
    }

    /// Observed and expected count of every cell that could be filled.
    fn cells(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let seconds = self.of_second.len();
        self.counts
            .iter()
            .enumerate()
            .map(move |(cell, &count)| {
                let (a, b) = (
                    self.of_first[cell / seconds],
                    self.of_second[cell % seconds],
                );
                (count as f64, a as f64 * b as f64 / self.rows as f64)
            })
            .filter(|&(_, expected)| expected > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 × 2: 10 20 / 30 5, and an unused level.
    fn table() -> Contingency {
        let cells = [(0, 0, 10), (0, 1, 20), (2, 0, 30), (2, 1, 5)];
        let mut first = Vec::new();
        let mut second = Vec::new();
        for (a, b, times) in cells {
            first.extend(std::iter::repeat_n(a, times));
            second.extend(std::iter::repeat_n(b, times));
        }
        Contingency::count(&first, 3, &second, 2)
    }

    #[test]
    fn equals_the_formula_for_two_by_two() {
        // N(ad − bc)² / (row and column sums).
        let determinant: f64 = 10.0 * 5.0 - 20.0 * 30.0;
        let expected = 65.0 * determinant.powi(2) / (30.0 * 35.0 * 40.0 * 25.0);
        assert!((table().chi_square() - expected).abs() < 1e-12);
        for ratio in table().correlation_ratios() {
            assert!((ratio - expected / 65.0).abs() < 1e-12);
        }
    }

    #[test]
    fn information_is_entropy_of_a_copy_and_none_of_independents() {
        let copy = Contingency::count(&[0, 1, 0, 1], 2, &[0, 1, 0, 1], 2);
        assert!((copy.mutual_information() - 2f64.ln()).abs() < 1e-15);
        let independent = Contingency::count(&[0, 1, 0, 1], 2, &[0, 0, 1, 1], 2);
        assert_eq!(independent.mutual_information(), 0.0);
    }
}
