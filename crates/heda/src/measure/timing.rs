//! A stopwatch for operations of very different length.

use std::time::{Duration, Instant};

/// Time that an operation is repeated for.
const BUDGET: Duration = Duration::from_millis(400);

/// Milliseconds of one call: the fastest of as many as fit a fraction of a second, at least three,
/// because what slows a call down is always something else on the machine.
pub fn milliseconds(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut fastest = Duration::MAX;
    let mut calls = 0;
    while calls < 3 || start.elapsed() < BUDGET {
        let begin = Instant::now();
        call();
        fastest = fastest.min(begin.elapsed());
        calls += 1;
    }
    1000.0 * fastest.as_secs_f64()
}
