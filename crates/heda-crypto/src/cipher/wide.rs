//! With AES on 512 bits, four blocks an instruction.
//!
//! All unsafe code of this crate is in this file: two accesses to memory of four words that a reference
//! vouches for, and three calls of functions that are compiled for more than every processor has, each
//! after asking whether this one has it.

#![allow(
    unsafe_code,
    reason = "no crate offers sums of streams or many key schedules at once; see each SAFETY"
)]

use super::{Addition, CipherSums, PIECE};
use crate::wipe::wipe;
use std::arch::x86_64::*;
use std::array::from_fn;
use std::ptr;
use zeroize::{Zeroize, Zeroizing, optimization_barrier};

/// The keys of the eleven steps of AES-128.
type RoundKeys = [u128; ROUND_KEYS];
const ROUND_KEYS: usize = 11;
/// Blocks of a vector.
const LANES: usize = 4;
/// Vectors that are summed up together: with as many keys they fill half of the registers.
const VECTORS: usize = 4;

/// Whether the processor has all that the functions below are compiled for.
fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("vaes")
        // What the compiler takes to be there if those are.
        && is_x86_feature_detected!("aes")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("fma")
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(words: &[u128; LANES]) -> __m512i {
    // SAFETY: a reference to 64 bytes; the load asks for no alignment.
    unsafe { _mm512_loadu_si512(ptr::from_ref(words).cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(vector: __m512i, words: &mut [u128; LANES]) {
    // SAFETY: an exclusive reference to 64 bytes; the store asks for no alignment.
    unsafe { _mm512_storeu_si512(ptr::from_mut(words).cast(), vector) }
}

/// The same block in all lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast(word: u128) -> __m512i {
    let word = _mm_set_epi64x((word >> 64) as i64, word as i64);
    _mm512_broadcast_i32x4(word)
}

/// Keys of all steps of four ciphers a vector (FIPS 197, section 5.2). The last word of a key is
/// turned and put into every column; the last step of AES then substitutes its bytes, for moving equal columns changes
/// nothing, and adds the constant of the step.
/// They are written where they are wiped later: what is returned would leave a copy behind.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,vaes")]
fn expand<const N: usize>(keys: [__m512i; N], rounds: &mut [[__m512i; N]; ROUND_KEYS]) {
    const CONSTANTS: [i32; ROUND_KEYS - 1] = [1, 2, 4, 8, 16, 32, 64, 128, 0x1b, 0x36];
    let turn = _mm512_set1_epi32(0x0c0f_0e0d);
    rounds[0] = keys;
    for (step, constant) in CONSTANTS.into_iter().enumerate() {
        let constant = _mm512_set1_epi32(constant);
        let mut next = rounds[step];
        for slot in &mut next {
            let key = *slot;
            let last = _mm512_aesenclast_epi128(_mm512_shuffle_epi8(key, turn), constant);
            let pairs = _mm512_xor_si512(key, _mm512_bslli_epi128::<4>(key));
            let prefixes = _mm512_xor_si512(pairs, _mm512_bslli_epi128::<8>(pairs));
            *slot = _mm512_xor_si512(prefixes, last);
        }
        rounds[step + 1] = next;
    }
}

/// Encrypts vectors under the keys of every step, one vector of keys a step.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn encrypt<const N: usize>(keys: &[__m512i; ROUND_KEYS], mut blocks: [__m512i; N]) -> [__m512i; N] {
    for block in &mut blocks {
        *block = _mm512_xor_si512(*block, keys[0]);
    }
    for key in &keys[1..ROUND_KEYS - 1] {
        for block in &mut blocks {
            *block = _mm512_aesenc_epi128(*block, *key);
        }
    }
    for block in &mut blocks {
        *block = _mm512_aesenclast_epi128(*block, keys[ROUND_KEYS - 1]);
    }
    blocks
}

/// Adds lane by lane; the number stands for an [`Addition`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn plus<const ADDITION: u8>(a: __m512i, b: __m512i) -> __m512i {
    match ADDITION {
        XOR => _mm512_xor_si512(a, b),
        BYTES => _mm512_add_epi8(a, b),
        HALVES => _mm512_add_epi16(a, b),
        _ => _mm512_add_epi32(a, b),
    }
}
const XOR: u8 = 0;
const BYTES: u8 = 1;
const HALVES: u8 = 2;
const WORDS: u8 = 3;

/// Overwrites vectors that held secrets. (The compiler may have put some aside while it ran out of
/// registers; those it overwrites by the next call.)
#[inline]
fn forget<T: Copy>(vectors: &mut T, zero: T) {
    *vectors = zero;
    optimization_barrier(vectors);
}

/// The round keys of many ciphers.
pub(super) struct Schedules(Zeroizing<Vec<RoundKeys>>);

impl Schedules {
    /// None if the processor cannot, or if there are fewer than four keys.
    pub(super) fn new(keys: &[u128]) -> Option<Self> {
        if keys.len() < LANES || !available() {
            return None;
        }
        // SAFETY: the processor has what the function is compiled for.
        Some(Self(unsafe { schedules(keys) }))
    }

    /// As in `portable.rs`.
    pub(super) fn sums(
        &self,
        inputs: &[u128; PIECE],
        count: usize,
        addition: Addition,
        sums: &mut CipherSums,
    ) {
        let add = match addition {
            Addition::Xor => add_up::<XOR>,
            Addition::Bytes => add_up::<BYTES>,
            Addition::Halves => add_up::<HALVES>,
            Addition::Words => add_up::<WORDS>,
        };
        // SAFETY: there are schedules, so the processor has what the functions are compiled for.
        unsafe { add(&self.0, inputs, count, sums) };
    }
}

#[target_feature(enable = "avx512f,avx512bw,vaes")]
fn schedules(keys: &[u128]) -> Zeroizing<Vec<RoundKeys>> {
    let mut schedules = Zeroizing::new(vec![[0; ROUND_KEYS]; keys.len()]);
    let mut words = Zeroizing::new([0; LANES]);
    let zero = [[_mm512_setzero_si512()]; ROUND_KEYS];
    let mut rounds = zero;
    for (keys, schedules) in keys.chunks(LANES).zip(schedules.chunks_mut(LANES)) {
        words[..keys.len()].copy_from_slice(keys);
        expand([load(&words)], &mut rounds);
        for (step, [vector]) in rounds.iter().enumerate() {
            store(*vector, &mut words);
            for (schedule, word) in schedules.iter_mut().zip(words.iter()) {
                schedule[step] = *word;
            }
        }
    }
    forget(&mut rounds, zero);
    schedules
}

/// What four ciphers make of the same vectors.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn encrypt_by_four(
    keys: &[RoundKeys; LANES],
    inputs: &[__m512i; VECTORS],
) -> [[__m512i; VECTORS]; LANES] {
    let mut streams = [*inputs; LANES];
    for (stream, keys) in streams.iter_mut().zip(keys) {
        let key = broadcast(keys[0]);
        for block in stream {
            *block = _mm512_xor_si512(*block, key);
        }
    }
    for step in 1..ROUND_KEYS - 1 {
        for (stream, keys) in streams.iter_mut().zip(keys) {
            let key = broadcast(keys[step]);
            for block in stream {
                *block = _mm512_aesenc_epi128(*block, key);
            }
        }
    }
    for (stream, keys) in streams.iter_mut().zip(keys) {
        let key = broadcast(keys[ROUND_KEYS - 1]);
        for block in stream {
            *block = _mm512_aesenclast_epi128(*block, key);
        }
    }
    streams
}

/// Sums of neighbours wait for each other as in `portable.rs`, four ciphers at a time.
#[target_feature(enable = "avx512f,avx512bw,vaes")]
fn add_up<const ADDITION: u8>(
    schedules: &[RoundKeys],
    inputs: &[u128; PIECE],
    count: usize,
    sums: &mut CipherSums,
) {
    let levels = schedules.len().ilog2() as usize - 2;
    let zero = _mm512_setzero_si512();
    let (no_sum, no_bits) = ([zero; VECTORS], [[zero; VECTORS]; super::MOST_BITS]);
    let (mut sum, mut bits) = (no_sum, no_bits);
    let mut waiting = [[zero; VECTORS]; super::MOST_BITS - 2];
    let (inputs, _) = inputs.as_chunks::<LANES>();
    for first in (0..count.div_ceil(LANES)).step_by(VECTORS) {
        let inputs: [__m512i; VECTORS] = from_fn(|n| load(&inputs[first + n]));
        (sum, bits) = (no_sum, no_bits);
        for (four, keys) in schedules.as_chunks::<LANES>().0.iter().enumerate() {
            let streams = encrypt_by_four(keys, &inputs);
            for n in 0..VECTORS {
                let odd = plus::<ADDITION>(streams[1][n], streams[3][n]);
                let high = plus::<ADDITION>(streams[2][n], streams[3][n]);
                let even = plus::<ADDITION>(streams[0][n], streams[2][n]);
                bits[0][n] = plus::<ADDITION>(bits[0][n], odd);
                bits[1][n] = plus::<ADDITION>(bits[1][n], high);
                sum[n] = plus::<ADDITION>(even, odd);
            }
            let ones = (four.trailing_ones() as usize).min(levels);
            for level in 0..ones {
                for n in 0..VECTORS {
                    bits[level + 2][n] = plus::<ADDITION>(bits[level + 2][n], sum[n]);
                    sum[n] = plus::<ADDITION>(sum[n], waiting[level][n]);
                }
            }
            if ones < levels {
                waiting[ones] = sum;
            }
        }
        let rows = [&mut sums.all].into_iter().chain(&mut sums.bits);
        for (row, sum) in rows
            .zip(std::slice::from_ref(&sum).iter().chain(&bits))
            .take(levels + 3)
        {
            let (row, _) = row.as_chunks_mut::<LANES>();
            for (words, vector) in row[first..].iter_mut().zip(sum) {
                store(*vector, words);
            }
        }
    }
    // After the loop: before, they would have to be in memory all the time.
    forget(&mut sum, no_sum);
    forget(&mut bits, no_bits);
    forget(&mut waiting, [[zero; VECTORS]; super::MOST_BITS - 2]);
}

/// As in `portable.rs`; false if the processor cannot.
pub(super) fn hash(keys: &[u128], each: usize, inputs: &[u128], hashed: &mut [u128]) -> bool {
    let able = available();
    if able {
        // SAFETY: the processor has what the function is compiled for.
        unsafe { hash_under(keys, each.max(1), inputs, hashed) };
    }
    able
}

/// Ciphers whose keys are made ready together: four vectors, so that none waits for itself.
const KEYS: usize = 4 * LANES;

#[target_feature(enable = "avx512f,avx512bw,vaes")]
fn hash_under(keys: &[u128], each: usize, inputs: &[u128], hashed: &mut [u128]) {
    let mut padded = [[0; LANES]; KEYS / LANES];
    let zero = [[_mm512_setzero_si512(); KEYS / LANES]; ROUND_KEYS];
    let mut rounds = zero;
    let mut schedules = [[[0; LANES]; KEYS / LANES]; ROUND_KEYS];
    let mut own = [_mm512_setzero_si512(); ROUND_KEYS];
    let inputs = inputs.chunks(each * KEYS);
    let parts = inputs.zip(hashed.chunks_mut(each * KEYS));
    for (keys, (inputs, hashed)) in keys.chunks(KEYS).zip(parts) {
        padded.as_flattened_mut()[..keys.len()].copy_from_slice(keys);
        expand(padded.each_ref().map(|words| load(words)), &mut rounds);
        if each == 1 {
            hash_one_each(&rounds, inputs, hashed);
            continue;
        }
        for (schedule, round) in schedules.iter_mut().zip(&rounds) {
            for (words, vector) in schedule.iter_mut().zip(round) {
                store(*vector, words);
            }
        }
        let parts = inputs.chunks(each).zip(hashed.chunks_mut(each));
        for (number, (inputs, hashed)) in parts.enumerate() {
            for (key, schedule) in own.iter_mut().zip(&schedules) {
                *key = broadcast(schedule.as_flattened()[number]);
            }
            hash_alike(&own, inputs, hashed);
        }
    }
    forget(&mut rounds, zero);
    forget(&mut own, [_mm512_setzero_si512(); ROUND_KEYS]);
    wipe(padded.as_flattened_mut());
    wipe(schedules.as_flattened_mut().as_flattened_mut());
}

/// One block under each key: a vector of blocks and a vector of keys.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn hash_one_each(
    rounds: &[[__m512i; KEYS / LANES]; ROUND_KEYS],
    inputs: &[u128],
    hashed: &mut [u128],
) {
    let mut words = Zeroizing::new([[0; LANES]; KEYS / LANES]);
    words.as_flattened_mut()[..inputs.len()].copy_from_slice(inputs);
    for (number, words) in words.iter_mut().enumerate() {
        let input = load(words);
        let keys = from_fn(|step| rounds[step][number]);
        let [sealed] = encrypt(&keys, [input]);
        store(_mm512_xor_si512(sealed, input), words);
    }
    hashed.copy_from_slice(&words.as_flattened()[..hashed.len()]);
}

/// Any number of blocks under one key.
#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn hash_alike(keys: &[__m512i; ROUND_KEYS], inputs: &[u128], hashed: &mut [u128]) {
    let (inputs, last) = inputs.as_chunks::<LANES>();
    let (hashed, last_hashed) = hashed.as_chunks_mut::<LANES>();
    let (eights, rest) = inputs.as_chunks::<8>();
    let (eights_hashed, rest_hashed) = hashed.as_chunks_mut::<8>();
    for (inputs, hashed) in eights.iter().zip(eights_hashed) {
        hash_vectors(keys, inputs, hashed);
    }
    let (pairs, rest) = rest.as_chunks::<2>();
    let (pairs_hashed, rest_hashed) = rest_hashed.as_chunks_mut::<2>();
    for (inputs, hashed) in pairs.iter().zip(pairs_hashed) {
        hash_vectors(keys, inputs, hashed);
    }
    for (input, hashed) in rest.iter().zip(rest_hashed) {
        hash_vectors(keys, &[*input], std::array::from_mut(hashed));
    }
    if !last.is_empty() {
        let mut inputs = [[0; LANES]];
        let mut words = [[0; LANES]];
        inputs[0][..last.len()].copy_from_slice(last);
        hash_vectors(keys, &inputs, &mut words);
        last_hashed.copy_from_slice(&words[0][..last_hashed.len()]);
        inputs.zeroize();
        words.zeroize();
    }
}

#[inline]
#[target_feature(enable = "avx512f,vaes")]
fn hash_vectors<const N: usize>(
    keys: &[__m512i; ROUND_KEYS],
    inputs: &[[u128; LANES]; N],
    hashed: &mut [[u128; LANES]; N],
) {
    let inputs: [__m512i; N] = from_fn(|n| load(&inputs[n]));
    let sealed = encrypt(keys, inputs);
    for n in 0..N {
        store(_mm512_xor_si512(sealed[n], inputs[n]), &mut hashed[n]);
    }
}
