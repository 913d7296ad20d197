//! Numbers that the paper prints, to stand beside ours: its tables 3a and 3b ("Building Blocks
//! Performance"), one i7-3770 at 3.4 GHz, Java, 2048-bit keys.

use heda_learn::bundled::Bundle;

/// A row of table 3b.
pub(super) struct Printed {
    pub(super) bundle: Bundle,
    /// Accuracy in %, trained in clear.
    pub(super) standard: f64,
    /// Accuracy in %, trained under encryption.
    pub(super) secure: f64,
    pub(super) seconds: f64,
    pub(super) seconds_user: f64,
    pub(super) seconds_providers: f64,
    pub(super) interactions: u32,
}

const fn printed(
    bundle: Bundle,
    [standard, secure]: [f64; 2],
    [seconds, seconds_user, seconds_providers]: [f64; 3],
    interactions: u32,
) -> Printed {
    Printed {
        bundle,
        standard,
        secure,
        seconds,
        seconds_user,
        seconds_providers,
        interactions,
    }
}

/// Table 3b.
pub(super) const TABLE_3B: [Printed; 4] = [
    printed(Bundle::Bcwd, [96.595, 95.422], [2428.0, 32.0, 2396.0], 189),
    printed(
        Bundle::Adult,
        [82.590, 81.578],
        [41145.0, 459.0, 40685.0],
        1500,
    ),
    printed(
        Bundle::Crx,
        [85.607, 84.463],
        [17346.0, 252.0, 17094.0],
        1173,
    ),
    printed(Bundle::Car, [72.32, 72.68], [10458.0, 122.0, 10335.0], 1122),
];

/// Table 3a in milliseconds, in the order of [`super::blocks::BLOCKS`].
pub(super) const TABLE_3A: [(Bundle, [f64; 7]); 4] = [
    (
        Bundle::Bcwd,
        [1462.0, 268.0, 372.0, 2400.0, 2452.0, 61510.0, 18.0],
    ),
    (
        Bundle::Adult,
        [17026.0, 5710.0, 2759.0, 47012.0, 52291.0, 1_112_344.0, 17.0],
    ),
    (
        Bundle::Crx,
        [8643.0, 546.0, 1114.0, 18882.0, 20906.0, 411_493.0, 16.0],
    ),
    (
        Bundle::Car,
        [2752.0, 374.0, 890.0, 5800.0, 6515.0, 295_934.0, 22.0],
    ),
];
