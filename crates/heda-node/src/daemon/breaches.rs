//! Whoever breaks the protocol waits before its next session, twice as long each time.
//!
//! A peer that is allowed in can make a provider read, decode and write down what is then refused.
//! One breach is a defect of its program; one after the other is a nuisance to the jobs of others. An
//! honest peer breaks nothing: a line that is cut is no breach, and a refusal by policy is none.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often the pause doubles.
pub(crate) const MOST_DOUBLINGS: u32 = 6;
/// How long after a pause a peer's breaches are forgotten.
const MEMORY: Duration = Duration::from_secs(600);

/// What is remembered of peers that broke the protocol, by fingerprint. Only peers that the
/// configuration allows get so far, so there are few.
#[derive(Debug)]
pub(crate) struct Breaches {
    first: Duration,
    peers: Mutex<HashMap<[u8; 32], Breach>>,
}

#[derive(Debug, Clone, Copy)]
struct Breach {
    many: u32,
    until: Instant,
}

impl Breaches {
    /// With this pause after a first breach; without any if it is nought.
    pub(crate) fn new(first: Duration) -> Self {
        Self {
            first,
            peers: Mutex::default(),
        }
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<[u8; 32], Breach>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a breach down.
    pub(crate) fn note(&self, peer: [u8; 32], now: Instant) {
        let mut peers = self.peers();
        peers.retain(|_, breach| now < breach.until + MEMORY);
        let before = peers.get(&peer).map_or(0, |breach| breach.many);
        let pause = self.first * (1 << before.min(MOST_DOUBLINGS));
        let breach = Breach {
            many: before.saturating_add(1),
            until: now + pause,
        };
        peers.insert(peer, breach);
    }

    /// How long a peer still has to wait.
    pub(crate) fn pause(&self, peer: &[u8; 32], now: Instant) -> Option<Duration> {
        let until = self.peers().get(peer)?.until;
        let left = until.checked_duration_since(now)?;
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: [u8; 32] = [1; 32];
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_double_up_to_a_bound_and_are_forgotten() {
        let breaches = Breaches::new(SECOND);
        let mut now = Instant::now();
        assert_eq!(breaches.pause(&PEER, now), None);
        for seconds in [1, 2, 4, 8, 16, 32, 64, 64, 64] {
            breaches.note(PEER, now);
            assert_eq!(breaches.pause(&PEER, now), Some(SECOND * seconds));
            assert_eq!(breaches.pause(&[2; 32], now), None, "somebody else");
            now += SECOND * seconds;
            assert_eq!(breaches.pause(&PEER, now), None);
        }
        now += MEMORY;
        breaches.note(PEER, now);
        assert_eq!(breaches.pause(&PEER, now), Some(SECOND));
    }

    #[test]
    fn nought_is_no_pause() {
        let breaches = Breaches::new(Duration::ZERO);
        let now = Instant::now();
        (0..50).for_each(|_| breaches.note(PEER, now));
        assert_eq!(breaches.pause(&PEER, now), None);
    }
}
