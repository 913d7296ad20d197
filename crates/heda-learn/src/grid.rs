//! Real numbers rounded onto equal steps: the one place that knows rounding.
//!
//! ```
//! use heda_learn::grid::Grid;
//!
//! let grid = Grid::of_bits(10);
//! assert_eq!(grid.point(0.3), 307);
//! ```

/// Equal steps from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grid {
    steps: u32,
}

impl Grid {
    /// A grid with so many steps, at least one.
    pub const fn of_steps(steps: u32) -> Self {
        match steps {
            0 => Self { steps: 1 },
            _ => Self { steps },
        }
    }

    /// A grid with 2^`bits` steps; at most 31 bits.
    pub const fn of_bits(bits: u32) -> Self {
        Self {
            steps: match bits {
                0..=31 => 1 << bits,
                _ => 1 << 31,
            },
        }
    }

    /// How many steps there are from 0 to 1.
    pub const fn steps(self) -> u32 {
        self.steps
    }

    /// The point nearest to a number; halves go away from zero. What is below 0 or not a number is
    /// the point 0.
    pub fn point(self, value: f64) -> u32 {
        self.rounded(value) as u32
    }

    /// The same below 0 as above it.
    pub fn signed_point(self, value: f64) -> i32 {
        self.rounded(value) as i32
    }

    fn rounded(self, value: f64) -> f64 {
        (value * f64::from(self.steps)).round()
    }

    /// The number that a point stands for.
    pub fn value(self, point: u32) -> f64 {
        f64::from(point) / f64::from(self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_the_nearest_ones() {
        for grid in [Grid::of_bits(10), Grid::of_steps(100), Grid::of_bits(7)] {
            let steps = grid.steps();
            for n in 0..=1000u32 {
                let value = f64::from(n) / 1000.0;
                let point = grid.point(value);
                // Exactly: |2·n·steps − 2·1000·point| is at most 1000.
                let (exact, found) = (2 * n * steps, 2000 * point);
                assert!(exact.abs_diff(found) <= 1000, "{value} on {steps} steps");
            }
            assert_eq!((grid.point(0.0), grid.point(1.0)), (0, steps));
            assert_eq!(grid.value(steps), 1.0);
        }
        let grid = Grid::of_steps(100);
        assert_eq!((grid.point(f64::NAN), grid.point(-1.0)), (0, 0));
        assert_eq!(
            (grid.signed_point(-0.25), grid.signed_point(0.25)),
            (-25, 25)
        );
    }
}
