//! Time, injected, so that tests can move it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// Days since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct Day(pub u64);

impl Timestamp {
    /// The day that this moment belongs to, in UTC.
    pub fn day(self) -> Day {
        Day(self.0 / 86_400)
    }
}

/// Date and time for people, to the minute.
impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (hour, minute) = (self.0 / 3600 % 24, self.0 / 60 % 60);
        write!(f, "{} {hour:02}:{minute:02} UTC", self.day())
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&heda_learn::date::text(self.0 as f64))
    }
}

/// Where the time of day comes from.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Timestamp(since.unwrap_or(Duration::ZERO).as_secs())
    }
}

/// A clock that is set by hand, for tests.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that shows this time until it is set again.
    pub fn at(now: Timestamp) -> Self {
        Self(AtomicU64::new(now.0))
    }

    /// Moves the clock, forwards or back.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_dates() {
        let moment = Timestamp(1_795_005_930);
        assert_eq!(moment.to_string(), "2026-11-18 12:45 UTC");
        assert_eq!(moment.day().to_string(), "2026-11-18");
        assert_eq!(Timestamp(0).to_string(), "1970-01-01 00:00 UTC");
    }
}
