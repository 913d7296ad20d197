//! Counts what goes on by key, and lets no key go over its limit.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts by key; what is counted ends when its [`CountedPlace`] is dropped.
#[derive(Debug)]
pub(crate) struct Counter<K: Eq + Hash + Clone>(Arc<Mutex<HashMap<K, usize>>>);

impl<K: Eq + Hash + Clone> Counter<K> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// One more for this key, unless there are `limit` already.
    pub(crate) fn enter(&self, key: K, limit: usize) -> Option<CountedPlace<K>> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(key.clone()).or_insert(0);
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(CountedPlace {
            counts: Arc::clone(&self.0),
            key,
        })
    }
}

/// One that is counted.
#[derive(Debug)]
pub(crate) struct CountedPlace<K: Eq + Hash + Clone> {
    counts: Arc<Mutex<HashMap<K, usize>>>,
    key: K,
}

impl<K: Eq + Hash + Clone> Drop for CountedPlace<K> {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_is_bounded_by_key_and_ends_with_the_guard() {
        let counter = Counter::new();
        let first = counter.enter("a", 2);
        let second = counter.enter("a", 2);
        assert!(first.is_some() && second.is_some());
        assert!(counter.enter("a", 2).is_none());
        assert!(counter.enter("b", 2).is_some());
        drop(first);
        assert!(counter.enter("a", 2).is_some());
    }
}
