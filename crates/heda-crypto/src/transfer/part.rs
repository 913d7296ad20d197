//! A run of transfers: what was made for many at once is shared, and parts are split off to be used.

use super::TransferError;
use std::ops::Range;
use std::sync::Arc;

/// Some of the transfers that share an `S`.
pub(super) struct TransferPart<S> {
    pub(super) shared: Arc<S>,
    pub(super) range: Range<usize>,
}

impl<S> TransferPart<S> {
    /// All of them.
    pub(super) fn whole(shared: S, count: usize) -> Self {
        Self {
            shared: Arc::new(shared),
            range: 0..count,
        }
    }

    /// How many they are.
    pub(super) fn count(&self) -> usize {
        self.range.len()
    }

    /// The first `count` transfers, and the others.
    pub(super) fn split(self, count: usize) -> Result<(Self, Self), TransferError> {
        let Range { start, end } = self.range;
        let expected = end - start;
        if count > expected {
            let (what, got) = ("the part to split off", count);
            return Err(TransferError::CountMismatch {
                what,
                got,
                expected,
            });
        }
        let first = Self {
            shared: Arc::clone(&self.shared),
            range: start..start + count,
        };
        let second = Self {
            shared: self.shared,
            range: start + count..end,
        };
        Ok((first, second))
    }
}

/// What every kind of transfers can do before it is used. The types are consumed by their use.
macro_rules! parts {
    ($($name:ident),+) => {
        $(impl $name {
            /// How many transfers there are.
            pub fn count(&self) -> usize {
                self.0.count()
            }

            /// The first `count` transfers, and the others.
            pub fn split(self, count: usize) -> Result<(Self, Self), TransferError> {
                let (first, second) = self.0.split(count)?;
                Ok((Self(first), Self(second)))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({} transfers)", stringify!($name), self.count())
            }
        })+
    };
}
pub(super) use parts;
