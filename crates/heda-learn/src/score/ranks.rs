//! Ranks with ties, which Kruskal–Wallis, Spearman and equal-frequency groups need.

/// The ranks of a list: 1 for the smallest, the mean rank among equals.
pub(super) struct Ranks {
    /// One rank a value.
    pub(super) ranks: Vec<f64>,
    /// Σ(t³ − t) over groups of t equal values.
    pub(super) tie_sum: f64,
    /// How many different values there are.
    pub(super) distinct: usize,
}

/// Ranks finite values.
pub(super) fn rank(values: &[f64]) -> Ranks {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
    let mut result = Ranks {
        ranks: vec![0.0; values.len()],
        tie_sum: 0.0,
        distinct: 0,
    };
    let mut below = 0;
    for group in order.chunk_by(|&a, &b| values[a as usize] == values[b as usize]) {
        let size = group.len() as f64;
        let mean = below as f64 + (size + 1.0) / 2.0;
        group
            .iter()
            .for_each(|&at| result.ranks[at as usize] = mean);
        below += group.len();
        result.tie_sum += size * size * size - size;
        result.distinct += 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_share_their_mean_rank() {
        let result = rank(&[0.5, 0.1, 0.5, 0.9, 0.5, 0.1]);
        assert_eq!(result.ranks, [4.0, 1.5, 4.0, 6.0, 4.0, 1.5]);
        assert_eq!(result.tie_sum, 24.0 + 6.0);
        assert_eq!(result.distinct, 3);
    }

    #[test]
    fn zero_and_minus_zero_are_one_value() {
        assert_eq!(rank(&[0.0, -0.0, 0.0]).distinct, 1);
    }
}
