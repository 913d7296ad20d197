//! AES-128 in the two ways that transfers use it: the same blocks under many keys, of which only sums
//! are wanted; and a few blocks under each of many keys, hashed.
//!
//! Nearly all of a gradient's time goes here, so there are two implementations of the same functions.
//! `portable.rs` leaves the cipher to the crate `aes`, which takes whatever the processor has. `wide.rs`
//! is for processors with AES on 512 bits (VAES and AVX-512: servers of AMD since Zen 4, of Intel since Ice
//! Lake). There four blocks are encrypted by one instruction, streams are added up without leaving the registers, and
//! the keys of four ciphers are made ready at once. It has the only unsafe code of this crate. Which one works is found out once, when
//! the program runs; tests compare the two. Whoever wants none of that code builds with `RUSTFLAGS="--cfg heda_portable"`.

mod lanes;
mod portable;
#[cfg(all(target_arch = "x86_64", not(heda_portable)))]
mod wide;

pub(crate) use lanes::{Lane, read_lanes};

use zeroize::Zeroize;

/// Blocks that are encrypted together under each key.
pub(crate) const PIECE: usize = 64;
/// Sums over the leaves of a tree are by the bits of their numbers: at most so many.
const MOST_BITS: usize = 8;

/// What adding two blocks means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addition {
    /// Bit by bit.
    Xor,
    /// Bytes modulo 2^8.
    Bytes,
    /// Two bytes at a time, lowest first, modulo 2^16.
    Halves,
    /// Four bytes at a time, lowest first, modulo 2^32.
    Words,
}

/// Ciphers under secret keys, a power of two of them, numbered from nought.
pub(crate) struct Ciphers {
    kind: CipherKind,
    bits: usize,
}

enum CipherKind {
    Portable(portable::PortableCiphers),
    #[cfg(all(target_arch = "x86_64", not(heda_portable)))]
    Wide(wide::Schedules),
}

/// Sums of what many ciphers made of the same blocks.
pub(crate) struct CipherSums {
    /// Over all ciphers.
    pub(crate) all: [u128; PIECE],
    /// For each bit the sum over the ciphers that have it in their number.
    pub(crate) bits: [[u128; PIECE]; MOST_BITS],
}

impl CipherSums {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            all: [0; PIECE],
            bits: [[0; PIECE]; MOST_BITS],
        })
    }
}

impl Drop for CipherSums {
    fn drop(&mut self) {
        self.all.zeroize();
        self.bits.zeroize();
    }
}

impl Ciphers {
    /// One for each key, of which there are a power of two, 256 at most; what is beyond is left out.
    pub(crate) fn new(keys: &[u128]) -> Self {
        let bits = (keys.len().max(1).ilog2() as usize).min(MOST_BITS);
        let keys = &keys[..keys.len().min(1 << bits)];
        #[cfg(all(target_arch = "x86_64", not(heda_portable)))]
        if let Some(schedules) = wide::Schedules::new(keys) {
            let kind = CipherKind::Wide(schedules);
            return Self { kind, bits };
        }
        let kind = CipherKind::Portable(portable::PortableCiphers::new(keys));
        Self { kind, bits }
    }

    /// How many bits their numbers have.
    pub(crate) fn bits(&self) -> usize {
        self.bits
    }

    /// Encrypts the first `count` inputs under every key and adds up, place by place. What stands in the
    /// sums from place `count` on is of no meaning.
    pub(crate) fn sums(
        &self,
        inputs: &[u128; PIECE],
        count: usize,
        addition: Addition,
        sums: &mut CipherSums,
    ) {
        let count = count.min(PIECE);
        match &self.kind {
            CipherKind::Portable(ciphers) => ciphers.sums(inputs, count, addition, sums),
            #[cfg(all(target_arch = "x86_64", not(heda_portable)))]
            CipherKind::Wide(schedules) => schedules.sums(inputs, count, addition, sums),
        }
    }
}

/// E_K(x) ⊕ x for every input x: the first `each` inputs under the first key, and so on. There are
/// `each` inputs for every key, and as many outputs. Keys are public, inputs are not.
pub(crate) fn hash(keys: &[u128], each: usize, inputs: &[u128], hashed: &mut [u128]) {
    hash_under::<false>(keys, each, inputs, hashed);
}

/// E_K(x) for every input x, likewise; keys are secret.
pub(crate) fn encrypt(keys: &[u128], each: usize, inputs: &[u128], blocks: &mut [u128]) {
    hash_under::<true>(keys, each, inputs, blocks);
    blocks.iter_mut().zip(inputs).for_each(|(b, x)| *b ^= x);
}

fn hash_under<const SECRET: bool>(
    keys: &[u128],
    each: usize,
    inputs: &[u128],
    hashed: &mut [u128],
) {
    // A mistake of the caller, which must not leave anything unencrypted.
    assert_eq!(keys.len() * each, inputs.len());
    assert_eq!(inputs.len(), hashed.len());
    #[cfg(all(target_arch = "x86_64", not(heda_portable)))]
    if wide::hash(keys, each, inputs, hashed) {
        return;
    }
    portable::hash::<SECRET>(keys, each, inputs, hashed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Randomness;
    use aes::cipher::{BlockCipherEncrypt, KeyInit};
    use rand_core::Rng;

    fn words(seed: u64, count: usize) -> Vec<u128> {
        let mut rng = Randomness::seeded(seed).fork("words", 0).unwrap();
        let word = |_| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        (0..count).map(word).collect()
    }

    fn by_crate(key: u128, input: u128) -> u128 {
        let mut block = input.to_le_bytes().into();
        aes::Aes128Enc::new(&key.to_le_bytes().into()).encrypt_block(&mut block);
        u128::from_le_bytes(block.into())
    }

    fn plus(addition: Addition, a: u128, b: u128) -> u128 {
        let lanes = |bytes: usize| {
            let shifts = (0..16 / bytes).map(|lane| 8 * bytes * lane);
            shifts.fold(0, |sum, shift| {
                let lane = (a >> shift).wrapping_add(b >> shift) & ((1 << (8 * bytes)) - 1);
                sum | lane << shift
            })
        };
        match addition {
            Addition::Xor => a ^ b,
            Addition::Bytes => lanes(1),
            Addition::Halves => lanes(2),
            Addition::Words => lanes(4),
        }
    }

    /// The sums by their definition.
    fn expected(keys: &[u128], input: u128, addition: Addition, bit: Option<usize>) -> u128 {
        let counts = |number: usize| bit.is_none_or(|bit| number >> bit & 1 == 1);
        let chosen = keys.iter().enumerate().filter(|(n, _)| counts(*n));
        chosen.fold(0, |sum, (_, key)| {
            plus(addition, sum, by_crate(*key, input))
        })
    }

    /// Both implementations, or the one that this machine has.
    fn kinds(keys: &[u128]) -> Vec<Ciphers> {
        let portable = Ciphers {
            kind: CipherKind::Portable(portable::PortableCiphers::new(keys)),
            bits: keys.len().ilog2() as usize,
        };
        vec![portable, Ciphers::new(keys)]
    }

    #[test]
    fn sums_equal_their_definition() {
        for (height, count) in [
            (0, 5),
            (1, 64),
            (2, 1),
            (3, 16),
            (4, 17),
            (5, 64),
            (6, 40),
            (7, 5),
            (8, 33),
        ] {
            let keys = words(height, 1 << height);
            let inputs: [u128; PIECE] = words(100 + height, PIECE).try_into().unwrap();
            for ciphers in kinds(&keys) {
                assert_eq!(ciphers.bits(), height as usize);
                use Addition::{Bytes, Halves, Words, Xor};
                for addition in [Xor, Bytes, Halves, Words] {
                    let mut sums = CipherSums::new();
                    // What is left from before must not count.
                    sums.all.fill(77);
                    sums.bits.iter_mut().for_each(|sum| sum.fill(78));
                    ciphers.sums(&inputs, count, addition, &mut sums);
                    for (place, input) in inputs.iter().enumerate().take(count) {
                        let sum = |bit| expected(&keys, *input, addition, bit);
                        assert_eq!(sums.all[place], sum(None), "{addition:?} {height}");
                        for bit in 0..height as usize {
                            assert_eq!(sums.bits[bit][place], sum(Some(bit)), "{addition:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn hashes_equal_their_definition() {
        for (count, each) in [
            (1, 1),
            (3, 1),
            (16, 1),
            (37, 1),
            (5, 2),
            (17, 4),
            (20, 8),
            (2, 54),
            (9, 64),
            (4, 7),
        ] {
            let (keys, inputs) = (words(1, count), words(2, count * each));
            let (mut hashed, mut other) = (vec![0; count * each], vec![0; count * each]);
            hash(&keys, each, &inputs, &mut hashed);
            portable::hash::<false>(&keys, each, &inputs, &mut other);
            assert_eq!(hashed, other);
            encrypt(&keys, each, &inputs, &mut other);
            assert!((0..other.len()).all(|n| other[n] == hashed[n] ^ inputs[n]));
            for (number, (hashed, input)) in hashed.iter().zip(&inputs).enumerate() {
                assert_eq!(*hashed, by_crate(keys[number / each], *input) ^ input);
            }
        }
    }

    /// FIPS 197, appendix B, through both functions.
    #[test]
    fn a_published_example_comes_out() {
        let word = |bytes: [u8; 16]| u128::from_le_bytes(bytes);
        let key = word([
            0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf,
            0x4f, 0x3c,
        ]);
        let plain = word([
            0x32, 0x43, 0xf6, 0xa8, 0x88, 0x5a, 0x30, 0x8d, 0x31, 0x31, 0x98, 0xa2, 0xe0, 0x37,
            0x07, 0x34,
        ]);
        let sealed = word([
            0x39, 0x25, 0x84, 0x1d, 0x02, 0xdc, 0x09, 0xfb, 0xdc, 0x11, 0x85, 0x97, 0x19, 0x6a,
            0x0b, 0x32,
        ]);
        let mut hashed = [0; 5];
        hash(&[key; 5], 1, &[plain; 5], &mut hashed);
        assert_eq!(hashed, [sealed ^ plain; 5]);
        let mut sums = CipherSums::new();
        // An odd number of equal ciphers has bit 0 in its numbers: two of four.
        Ciphers::new(&[1, key, 3, 4]).sums(&[plain; PIECE], 1, Addition::Xor, &mut sums);
        let [three, four] = [3, 4].map(|key| by_crate(key, plain));
        assert_eq!(sums.bits[0][0], sealed ^ four);
        assert_eq!(sums.bits[1][0], three ^ four);
    }
}
