//! Circles of providers whose sums can be subtracted from each other.
//!
//! What a data user learns of gradients and scores are sums over the providers of a job. Sums over
//! {a, b, c} and over {a, b} differ by what c alone contributed, exactly so at the start of every
//! training. In general each provider set is a vector with a one for every member; whatever lies in the
//! span of the provider sets can be computed, and a provider stands alone if its unit vector does.
//!
//! Every provider sees only the provider sets that it belongs to. That is enough: whoever is in the
//! difference of two provider sets is protected by each honest provider that belongs to both.

use crate::identity::fingerprint::PeerFingerprint;
use std::collections::{BTreeMap, BTreeSet};

/// The providers of a job, this one among them.
pub type ProviderSet = BTreeSet<PeerFingerprint>;

/// How many different provider sets one data user may have had. Up to here arithmetic modulo `PRIME`
/// says the same as arithmetic with fractions: a determinant of n zeros and ones in each row is at
/// most (n + 1)^((n + 1)/2)/2^n (Hadamard), for n = 33 below 2^54, so none is a multiple of it.
pub const CIRCLES_MOST: usize = 32;

/// Why a provider set may not be added to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposure {
    /// This provider's own numbers would follow from the sums.
    SinglesOut(PeerFingerprint),
    /// More provider sets than anyone needs.
    TooMany,
}

/// Whether one more provider set singles somebody out who was not singled out before. A provider that is
/// a provider set by itself is none of our concern here: it agreed to that.
pub fn exposure(before: &BTreeSet<ProviderSet>, provider_set: &ProviderSet) -> Option<Exposure> {
    if before.contains(provider_set) {
        return None;
    }
    if before.len() >= CIRCLES_MOST {
        return Some(Exposure::TooMany);
    }
    let members: BTreeSet<PeerFingerprint> = before
        .iter()
        .chain([provider_set])
        .flatten()
        .copied()
        .collect();
    let places: BTreeMap<PeerFingerprint, usize> = members.iter().copied().zip(0..).collect();
    let vector = |provider_set: &ProviderSet| {
        let mut vector = vec![0; places.len()];
        let own = provider_set.iter().filter_map(|member| places.get(member));
        own.for_each(|place| vector[*place] = 1);
        vector
    };
    let mut span = Subspace::default();
    before
        .iter()
        .for_each(|provider_set| span.add(vector(provider_set)));
    let known = span.units();
    span.add(vector(provider_set));
    let alone = (provider_set.len() == 1)
        .then(|| provider_set.first())
        .flatten();
    let mut new = span
        .units()
        .into_iter()
        .filter(|place| !known.contains(place));
    let mut new = new.by_ref().filter_map(|place| members.iter().nth(place));
    let singled = new.find(|member| Some(*member) != alone);
    singled.map(|member| Exposure::SinglesOut(*member))
}

/// 2^61 − 1.
const PRIME: u64 = (1 << 61) - 1;

fn times(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(PRIME)) as u64
}

fn inverse(of: u64) -> u64 {
    let (mut power, mut base, mut exponent) = (1, of, PRIME - 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = times(power, base);
        }
        base = times(base, base);
        exponent >>= 1;
    }
    power
}

/// A space in its reduced echelon form: each row has a one in a column where all others have zero.
#[derive(Default)]
struct Subspace {
    rows: Vec<(usize, Vec<u64>)>,
}

/// `row − factor·other`.
fn eliminate(row: &mut [u64], factor: u64, other: &[u64]) {
    for (value, other) in row.iter_mut().zip(other) {
        *value = (*value + PRIME - times(factor, *other)) % PRIME;
    }
}

impl Subspace {
    fn add(&mut self, mut vector: Vec<u64>) {
        for (pivot, row) in &self.rows {
            let factor = vector[*pivot];
            eliminate(&mut vector, factor, row);
        }
        let Some(pivot) = vector.iter().position(|value| *value != 0) else {
            return;
        };
        let scale = inverse(vector[pivot]);
        vector
            .iter_mut()
            .for_each(|value| *value = times(*value, scale));
        for (_, row) in &mut self.rows {
            let factor = row[pivot];
            eliminate(row, factor, &vector);
        }
        self.rows.push((pivot, vector));
    }

    /// The unit vectors in it: in this form they are rows.
    fn units(&self) -> BTreeSet<usize> {
        let single = self.rows.iter().filter(|(_, row)| {
            let entries = row.iter().filter(|value| **value != 0);
            entries.count() == 1
        });
        single.map(|(pivot, _)| *pivot).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::SubjectPublicKeyInfoDer;

    fn member(name: char) -> PeerFingerprint {
        PeerFingerprint::of_key(&SubjectPublicKeyInfoDer::from(vec![name as u8]))
    }

    fn provider_set(names: &str) -> ProviderSet {
        names.chars().map(member).collect()
    }

    fn singled(before: &[&str], new: &str) -> Option<Exposure> {
        let before = before.iter().map(|names| provider_set(names)).collect();
        exposure(&before, &provider_set(new))
    }

    fn out(name: char) -> Option<Exposure> {
        Some(Exposure::SinglesOut(member(name)))
    }

    #[test]
    fn who_stands_alone_in_a_difference_is_found() {
        assert_eq!(singled(&[], "abc"), None);
        assert_eq!(singled(&["abc"], "abc"), None);
        assert_eq!(singled(&["abc"], "ab"), out('c'));
        assert_eq!(singled(&["ab"], "abc"), out('c'));
        // Two at once hide each other, and so do one that came and one that left.
        assert_eq!(singled(&["abcd"], "ab"), None);
        assert_eq!(singled(&["abc"], "abd"), None);
    }

    #[test]
    fn combinations_of_several_provider_sets_are_found() {
        // All four of three members: their sum is three times everybody.
        assert_eq!(singled(&["abc", "abd"], "acd"), None);
        assert!(singled(&["abc", "abd", "acd"], "bcd").is_some());
        // (abcd) − (acd) = b.
        assert!(singled(&["abc", "acd"], "abcd").is_some());
    }

    #[test]
    fn whoever_works_alone_exposes_itself_but_not_others() {
        assert_eq!(singled(&[], "a"), None);
        assert_eq!(singled(&["a"], "ab"), out('b'));
        assert_eq!(singled(&["ab"], "a"), out('b'));
        // What is known already is not held against a new provider set.
        assert_eq!(singled(&["ab", "abc"], "abcde"), None);
    }

    #[test]
    fn a_number_times_its_inverse_is_one() {
        for number in [
            1,
            2,
            3,
            33,
            1 << 53,
            1_234_567_890_123,
            PRIME - 2,
            PRIME - 1,
        ] {
            assert_eq!(times(number, inverse(number)), 1, "{number}");
        }
        assert_eq!(inverse(2), PRIME.div_ceil(2));
    }

    #[test]
    fn there_is_an_end_to_new_provider_sets() {
        // Pairs with one in common never single anybody out: every difference has two members.
        let names: Vec<char> = (0..=CIRCLES_MOST as u8)
            .map(|n| char::from(b'!' + n))
            .collect();
        let pair = |with: char| provider_set(&format!("~{with}"));
        let mut before = BTreeSet::new();
        for with in &names[..CIRCLES_MOST] {
            assert_eq!(exposure(&before, &pair(*with)), None);
            before.insert(pair(*with));
        }
        let more = pair(names[CIRCLES_MOST]);
        assert_eq!(exposure(&before, &more), Some(Exposure::TooMany));
    }
}
