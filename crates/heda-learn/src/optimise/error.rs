//! Why a training cannot begin or go on.

use super::settings::Iterations;

/// Why a training cannot begin or go on: its settings, its rows, an answer, or a stored state.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A learning rate that is no positive number.
    #[error("learning rate {0}: choose a number above 0")]
    Rate(f64),
    /// A penalty that is none.
    #[error("c = {0}: choose a number above 0; a large one means a small penalty")]
    C(f64),
    /// A number that must not be negative.
    #[error("{name} = {value}: choose a number from 0 upwards")]
    Negative {
        /// Which setting.
        name: &'static str,
        /// What it says.
        value: f64,
    },
    /// No batches, or too many.
    #[error("{0} batches: choose between 1 and 65536")]
    Batches(usize),
    /// No memory, or too much.
    #[error("a memory of {0} pairs: choose between 1 and 100")]
    Memory(usize),
    /// A momentum that would never end, or none at all.
    #[error("momentum {0}: choose a number from 0 to below 1")]
    Momentum(f64),
    /// A number of iterations that nobody trains.
    #[error("{0} iterations: choose between 1 and {most}", most = Iterations::MOST)]
    Iterations(String),
    /// Penalties that are too few or too many, or not in order.
    #[error("a path has 2 to 16 penalties C, all above 0, from the smallest to the largest")]
    Path,
    /// There are no rows.
    #[error("there are no rows to train on")]
    NoRows,
    /// All rows are of one class.
    #[error("all rows have the same answer to \"is it {0}?\": a classifier needs both")]
    OneClass(String),
    /// All rows have the same number as their label.
    #[error("all rows have the same label: there is nothing to learn from it")]
    OneNumber,
    /// The class does not exist.
    #[error("class {class} of {classes} classes")]
    Class {
        /// The class asked for.
        class: u32,
        /// How many there are.
        classes: usize,
    },
    /// No coefficients, or too many.
    #[error("{0} coefficients: between 1 and 1048576 can be trained")]
    Size(usize),
    /// The gradient has another length.
    #[error("a gradient of {found} numbers for {expected} coefficients")]
    Dimension {
        /// Number of coefficients.
        expected: usize,
        /// Length of the gradient.
        found: usize,
    },
    /// The batch was empty.
    #[error("batch {index} of {count} holds no rows: use fewer batches")]
    EmptyBatch {
        /// Which batch.
        index: usize,
        /// Of how many.
        count: usize,
    },
    /// The gradient holds a NaN or an infinity.
    #[error("coefficient {0} of the gradient is not a finite number")]
    NotFinite(usize),
    /// The steps were too long.
    #[error("the coefficients left the range of numbers: lower the learning rate")]
    Diverged,
    /// An answer after the last question.
    #[error("the training has ended and takes no further gradient")]
    Ended,
    /// A stored state does not belong together.
    #[error("the stored state of the optimiser is damaged: {0}")]
    State(&'static str),
}
