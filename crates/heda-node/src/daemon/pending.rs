//! Where connections wait that have not proved who they are.
//!
//! Their number is bounded, in all and by address. When there is no room, somebody has to go, and
//! it is not the newcomer: of the address that has the most here, whoever has waited longest
//! without a word. So idle strangers keep nobody out, and an address that floods the port pushes
//! out its own. Addresses from which a trusted peer has come are spared as long as there are
//! others.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Bounds of the pending connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingLimits {
    pub(crate) in_all: usize,
    pub(crate) per_address: usize,
}

/// Addresses that are remembered as those of trusted peers.
const REMEMBERED: usize = 1024;

#[derive(Debug)]
pub(crate) struct PendingConnections {
    room: PendingLimits,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    /// By the order in which they came.
    waiting: BTreeMap<u64, Waiting>,
    next: u64,
    known: HashSet<IpAddr>,
}

#[derive(Debug)]
struct Waiting {
    address: IpAddr,
    spoke: bool,
    /// Dropped to send it away.
    _place: oneshot::Sender<()>,
}

/// A place among the pending connections; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    pending: Arc<PendingConnections>,
    number: u64,
}

/// Tells when the place is needed for somebody else.
#[derive(Debug)]
pub(crate) struct SentAway(oneshot::Receiver<()>);

impl SentAway {
    pub(crate) async fn wait(self) {
        let _ = self.0.await;
    }
}

impl PendingConnections {
    pub(crate) fn new(room: PendingLimits) -> Arc<Self> {
        Arc::new(Self {
            room,
            inside: Mutex::default(),
        })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a newcomer; who has to go for it is sent away.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> (Ticket, SentAway) {
        let (place, sent_away) = oneshot::channel();
        let mut inside = self.inside();
        if inside.count(address) >= self.room.per_address {
            inside.send_away(|waiting| waiting.address == address);
        } else if inside.waiting.len() >= self.room.in_all {
            let most = inside.most();
            inside.send_away(|waiting| Some(waiting.address) == most);
        }
        let number = inside.next;
        inside.next += 1;
        let waiting = Waiting {
            address,
            spoke: false,
            _place: place,
        };
        inside.waiting.insert(number, waiting);
        let ticket = Ticket {
            pending: Arc::clone(self),
            number,
        };
        (ticket, SentAway(sent_away))
    }

    /// A trusted peer has come from here.
    pub(crate) fn remember(&self, address: IpAddr) {
        let mut inside = self.inside();
        if inside.known.len() >= REMEMBERED {
            inside.known.clear();
        }
        inside.known.insert(address);
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.inside().waiting.len()
    }
}

impl Inside {
    fn count(&self, address: IpAddr) -> usize {
        let all = self.waiting.values();
        all.filter(|waiting| waiting.address == address).count()
    }

    /// The address with the most connections; known ones only if there are no others.
    fn most(&self) -> Option<IpAddr> {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for waiting in self.waiting.values() {
            *counts.entry(waiting.address).or_default() += 1;
        }
        let order = |(address, count): &(IpAddr, usize)| (!self.known.contains(address), *count);
        let most = counts.into_iter().max_by_key(order);
        most.map(|(address, _)| address)
    }

    /// Of these, the one that has waited longest in silence, or else the one that came first.
    fn send_away(&mut self, of: impl Fn(&Waiting) -> bool) {
        let candidates = self.waiting.iter().filter(|(_, waiting)| of(waiting));
        let oldest = candidates.min_by_key(|(number, waiting)| (waiting.spoke, **number));
        if let Some(number) = oldest.map(|(number, _)| *number) {
            self.waiting.remove(&number);
        }
    }
}

impl Ticket {
    /// It has said something.
    pub(crate) fn spoke(&self) {
        if let Some(waiting) = self.pending.inside().waiting.get_mut(&self.number) {
            waiting.spoke = true;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.pending.inside().waiting.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    type Visitor = (Ticket, SentAway);

    fn is_away((_, away): &mut Visitor) -> bool {
        away.0.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    fn pending() -> Arc<PendingConnections> {
        PendingConnections::new(PendingLimits {
            in_all: 6,
            per_address: 4,
        })
    }

    #[test]
    fn an_address_with_too_many_loses_its_oldest_silent_one() {
        let pending = pending();
        let mut flood: Vec<Visitor> = (0..4).map(|_| pending.enter(address(1))).collect();
        flood[0].0.spoke();
        let other = pending.enter(address(2));
        flood.push(pending.enter(address(1)));
        let away: Vec<bool> = flood.iter_mut().map(is_away).collect();
        assert_eq!(away, [false, true, false, false, false]);
        assert_eq!(pending.waiting(), 5);
        drop((flood, other));
        assert_eq!(pending.waiting(), 0);
    }

    #[test]
    fn a_full_pending_list_makes_room_at_the_cost_of_the_most_frequent_stranger() {
        let pending = pending();
        pending.remember(address(1));
        let mut known: Vec<Visitor> = (0..3).map(|_| pending.enter(address(1))).collect();
        let mut strangers: Vec<Visitor> = (0..2).map(|_| pending.enter(address(2))).collect();
        strangers.push(pending.enter(address(3)));
        let mut newcomer = pending.enter(address(4));
        let away: Vec<bool> = strangers.iter_mut().map(is_away).collect();
        assert_eq!(away, [true, false, false]);
        assert!(!known.iter_mut().any(is_away) && !is_away(&mut newcomer));
        assert_eq!(pending.waiting(), 6);
    }

    #[test]
    fn a_thousand_addresses_do_not_grow_the_pending_connections() {
        let pending = pending();
        let tickets: Vec<Visitor> = (0..250).map(|last| pending.enter(address(last))).collect();
        assert_eq!(pending.waiting(), 6);
        drop(tickets);
        assert_eq!(pending.waiting(), 0);
    }
}
