//! Fresh encryptions of zero with flooding noise, made ahead.
//!
//! Every answer consumes one. With a public key (b, a), a ternary u, an error e and flooding f a
//! zero is (b·u + f, a·u + e). Adding it makes the second half of an answer look uniform to the
//! key holder and drowns the noise of the first half; see `docs/circuit-privacy.md`. What is made
//! ahead are f, e and the transform of u: the answer multiplies u by the key together with its own
//! products, which saves two transforms.
//!
//! Zero number i depends only on the seed of the pool and on i: threads may make them in any
//! order, a seeded run stays reproducible, and no zero is given out twice.

use super::keys::PublicKey;
use super::ring::{Poly, Spectrum};
use super::sample::{self, Seed};
use rand_core::CryptoRng;
use rayon::prelude::*;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use zeroize::Zeroizing;

/// One encryption of zero, (b·u + f, a·u + e); consumed by the answer it protects.
pub(super) struct Zero {
    /// Absent only in tests that show why it is needed.
    pub(super) randomiser: Option<Randomiser>,
    /// f
    pub(super) flooding: Poly,
    /// e
    pub(super) error: Poly,
}

/// The key (b, a) and the transform of u.
pub(super) struct Randomiser {
    pub(super) key: Arc<PublicKey>,
    pub(super) u: Spectrum,
}

/// Gives out encryptions of zero under one public key.
pub struct ZeroPool {
    public_key: Arc<PublicKey>,
    seed: Zeroizing<Seed>,
    next: u64,
    ready: VecDeque<Zero>,
    workers: Vec<Worker>,
}

/// A thread that makes the zeros number w, w + n, w + 2n, … for worker w of n.
struct Worker {
    ready: Option<Receiver<Zero>>,
    thread: Option<JoinHandle<()>>,
}

impl ZeroPool {
    /// A pool that makes zeros when they are needed.
    pub fn on_demand<R: CryptoRng>(public_key: Arc<PublicKey>, rng: &mut R) -> Self {
        Self::with_workers(public_key, 0, 0, rng)
    }

    /// A pool whose threads keep about `ahead` zeros ready (600 KB each) until it is dropped.
    pub fn with_workers<R: CryptoRng>(
        public_key: Arc<PublicKey>,
        threads: usize,
        ahead: usize,
        rng: &mut R,
    ) -> Self {
        let seed = Zeroizing::new(sample::seed(rng));
        let start = |first| Worker::start(&public_key, &seed, first, threads, ahead);
        let workers = (0..threads).map(start).collect();
        Self {
            public_key,
            seed,
            next: 0,
            ready: VecDeque::new(),
            workers,
        }
    }

    /// The key that the zeros belong to.
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// Makes sure that this many zeros lie ready.
    pub fn prepare(&mut self, count: usize) {
        let missing = count.saturating_sub(self.ready.len());
        let made = self.make(missing);
        self.ready.extend(made);
    }

    /// The next zeros, as many as an answer has ciphertexts.
    pub(super) fn take(&mut self, count: usize) -> Vec<Zero> {
        self.prepare(count);
        self.ready.drain(..count).collect()
    }

    fn make(&mut self, count: usize) -> Vec<Zero> {
        let numbers = self.next..self.next + count as u64;
        self.next = numbers.end;
        if self.workers.is_empty() {
            let make = |number| self.public_key.zero(&self.seed, number);
            return numbers.into_par_iter().map(make).collect();
        }
        numbers.map(|number| self.receive(number)).collect()
    }

    fn receive(&self, number: u64) -> Zero {
        let worker = &self.workers[(number % self.workers.len() as u64) as usize];
        let ready = worker.ready.as_ref().and_then(|ready| ready.recv().ok());
        // A worker that died has lost its turn for good: the pool makes its zeros itself.
        ready.unwrap_or_else(|| self.public_key.zero(&self.seed, number))
    }
}

impl Worker {
    fn start(key: &Arc<PublicKey>, seed: &Seed, first: usize, step: usize, ahead: usize) -> Self {
        let (sender, ready) = sync_channel(ahead.div_ceil(step));
        let (key, seed) = (Arc::clone(key), Zeroizing::new(*seed));
        let work = move || make_ahead(&key, &seed, (first as u64..).step_by(step), &sender);
        Self {
            ready: Some(ready),
            thread: Some(std::thread::spawn(work)),
        }
    }
}

fn make_ahead(
    key: &Arc<PublicKey>,
    seed: &Seed,
    numbers: impl Iterator<Item = u64>,
    sender: &SyncSender<Zero>,
) {
    for number in numbers {
        if sender.send(key.zero(seed, number)).is_err() {
            return;
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.ready = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the worker must not become a second one here.
            let _ = thread.join();
        }
    }
}

impl PublicKey {
    /// Encryption of zero number `number` of a seed.
    fn zero(self: &Arc<Self>, seed: &Seed, number: u64) -> Zero {
        let mut rng = sample::generator(seed, number);
        let ring = self.ring;
        let u = ring.transform(ring.signed(&sample::ternary(&mut rng)));
        Zero {
            randomiser: Some(Randomiser {
                key: Arc::clone(self),
                u,
            }),
            flooding: sample::flooding(ring, &mut rng),
            error: ring.signed(&sample::error(&mut rng)),
        }
    }
}

impl fmt::Debug for ZeroPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ZeroPool({:?}, {} given out)",
            self.public_key, self.next
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::SecretKey;
    use crate::random::Randomness;

    #[test]
    fn threads_do_not_change_what_a_pool_gives() {
        let source = Randomness::seeded(5);
        let key = SecretKey::generate(&mut source.fork("key", 0).unwrap()).unwrap();
        let pool = |threads| {
            let mut rng = source.fork("pool", 0).unwrap();
            ZeroPool::with_workers(Arc::clone(key.public_key()), threads, 4, &mut rng)
        };
        let draw = |mut pool: ZeroPool| {
            let mut zeros = pool.take(2);
            zeros.extend(pool.take(3));
            zeros
        };
        let expected = draw(pool(0));
        for threads in [1, 2, 3] {
            let zeros = draw(pool(threads));
            let parts = |zero: &Zero| {
                let u = zero.randomiser.as_ref().map(|r| r.u.clone());
                (u, zero.flooding.clone(), zero.error.clone())
            };
            let same = zeros
                .iter()
                .zip(&expected)
                .all(|(a, b)| parts(a) == parts(b));
            assert!(same && zeros.len() == 5, "{threads} threads");
        }
        assert!(expected[0].flooding != expected[1].flooding);
        assert!(expected[1].flooding != expected[2].flooding);
    }
}
