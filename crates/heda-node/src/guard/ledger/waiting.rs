//! Who waits for room that others have set aside, in the order in which they came.
//!
//! What is set aside and not used is free after a while. That alone would not keep one data user from
//! setting it aside again at once, for as long as it likes. So a data user that did not use what it had
//! set aside lets those pass who waited before it came back. Nobody else is held up: who waits for
//! more than there is keeps no room from a smaller job.
//!
//! This lives in memory: a restart costs the others one more lapse.

use super::LedgerError;
use crate::identity::fingerprint::PeerFingerprint;
use crate::system::clock::Timestamp;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Seconds after which one that did not ask again waits no longer. A data user's program asks again
/// within a quarter of that.
const WAITING_SECONDS: u64 = 60;

/// What is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Resource {
    /// The account of private jobs.
    Account,
    /// The iterations of a day.
    Day,
}

/// All that wait for room.
#[derive(Debug, Clone, Default)]
pub(super) struct WaitingList(Arc<Mutex<HashMap<(Resource, String), Queue>>>);

/// The data users that wait for room of one data set.
#[derive(Debug, Default)]
struct Queue {
    /// When each came, by number, and when it asked last.
    waiting: HashMap<PeerFingerprint, (u64, Timestamp)>,
    /// Those that did not use what they had set aside last.
    unused: HashSet<PeerFingerprint>,
    came: u64,
}

fn is_recent(asked: Timestamp, now: Timestamp) -> bool {
    asked.0.saturating_add(WAITING_SECONDS) >= now.0
}

impl Queue {
    fn waits(&mut self, peer: PeerFingerprint, now: Timestamp) {
        self.waiting.retain(|_, (_, asked)| is_recent(*asked, now));
        self.came += 1;
        self.waiting.entry(peer).or_insert((self.came, now)).1 = now;
    }

    /// Whether a data user must let another one pass.
    fn yields(&self, peer: PeerFingerprint, now: Timestamp) -> bool {
        let own = self.waiting.get(&peer).map_or(u64::MAX, |(came, _)| *came);
        let earlier = |(came, asked): &(u64, Timestamp)| *came < own && is_recent(*asked, now);
        self.unused.contains(&peer) && self.waiting.values().any(earlier)
    }
}

impl WaitingList {
    fn queues(&self) -> MutexGuard<'_, HashMap<(Resource, String), Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets room aside by `take`, unless others come first. Who gets none waits.
    pub(super) fn in_turn<T>(
        &self,
        (room, data_set): (Resource, &str),
        peer: PeerFingerprint,
        now: Timestamp,
        take: impl FnOnce() -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let place = (room, data_set.to_owned());
        let queued = self.queues();
        let yields = queued
            .get(&place)
            .is_some_and(|queue| queue.yields(peer, now));
        drop(queued);
        let taken = match yields {
            true => Err(LedgerError::OthersWait),
            false => take(),
        };
        let mut queues = self.queues();
        let queue = queues.entry(place).or_default();
        match &taken {
            Ok(_) => drop(queue.waiting.remove(&peer)),
            Err(error) if error.is_for_now() => queue.waits(peer, now),
            Err(_) => {}
        }
        taken
    }

    /// A data user did not use what it had set aside. If another job of it waited meanwhile, it comes
    /// after all others as well.
    pub(super) fn unused(&self, room: Resource, data_set: &str, peer: PeerFingerprint) {
        let mut queues = self.queues();
        let queue = queues.entry((room, data_set.to_owned())).or_default();
        queue.unused.insert(peer);
        queue.waiting.remove(&peer);
    }

    /// A data user used what it had set aside.
    pub(super) fn used(&self, room: Resource, data_set: &str, peer: PeerFingerprint) {
        if let Some(queue) = self.queues().get_mut(&(room, data_set.to_owned())) {
            queue.unused.remove(&peer);
        }
    }
}
