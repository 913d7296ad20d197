//! Keys and ciphertexts as bytes.
//!
//! | what | bytes |
//! | --- | --- |
//! | public key | `P` 1, N |
//! | private key | `p` 1, p, q, each of half the length of N |
//! | ciphertexts | 1, fingerprint of the key (16), each number of twice the length of N |
//!
//! Numbers are big-endian and have a fixed length. No length is read from the bytes: how many
//! ciphertexts are meant is known from the context, and a key's length is that of its bytes.

use super::public::KeyFingerprint;
use super::{Ciphertext, CiphertextError, KeyError, KeySize, PrivateKey, PublicKey};
use crate::integer::{Natural, Residue, Ring};
use rayon::prelude::*;
use zeroize::Zeroizing;

const PUBLIC_KEY: [u8; 2] = [b'P', 1];
const PRIVATE_KEY: [u8; 2] = [b'p', 1];
const CIPHERTEXTS: u8 = 1;
const CIPHERTEXT_HEADER: usize = 1 + KeyFingerprint::LENGTH;

impl PublicKey {
    /// The key as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let number = self.modulus().to_be_bytes(self.modulus_bytes());
        [PUBLIC_KEY.as_slice(), &number.unwrap_or_default()].concat()
    }

    /// Reads and checks a key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let number = body(bytes, PUBLIC_KEY, |size| size.bits() / 8)?;
        Self::from_modulus(Natural::from_be_bytes(number))
    }

    /// As [`from_bytes`](Self::from_bytes), for keys that are too short to protect anything.
    #[doc(hidden)]
    pub fn from_bytes_insecure_for_tests(bytes: &[u8]) -> Result<Self, KeyError> {
        let number = header(bytes, PUBLIC_KEY)?;
        Self::from_modulus_of_any_size(Natural::from_be_bytes(number))
    }

    /// How many bytes `count` ciphertexts take together; `None` beyond all memory.
    pub fn encoded_length(&self, count: usize) -> Option<usize> {
        count
            .checked_mul(2 * self.modulus_bytes())?
            .checked_add(CIPHERTEXT_HEADER)
    }

    /// Ciphertexts of this key as bytes. Those of another key are an error.
    pub fn encode(&self, ciphertexts: &[Ciphertext]) -> Result<Vec<u8>, super::PaillierError> {
        self.check_all(ciphertexts)?;
        let length = 2 * self.modulus_bytes();
        let mut bytes = vec![CIPHERTEXTS];
        bytes.extend_from_slice(self.fingerprint().as_bytes());
        for ciphertext in ciphertexts {
            let number = self.number(ciphertext).to_be_bytes(length);
            bytes.extend_from_slice(&number.unwrap_or_default());
        }
        Ok(bytes)
    }

    /// Reads exactly `count` ciphertexts of this key and checks that each is a unit below N².
    pub fn decode(&self, bytes: &[u8], count: usize) -> Result<Vec<Ciphertext>, CiphertextError> {
        let expected = self.encoded_length(count).unwrap_or(usize::MAX);
        if bytes.len() != expected {
            let found = bytes.len();
            return Err(CiphertextError::Length { expected, found });
        }
        let (head, numbers) = bytes.split_at(CIPHERTEXT_HEADER);
        if head[0] != CIPHERTEXTS {
            return Err(CiphertextError::Format { found: head[0] });
        }
        if head[1..] != self.fingerprint().as_bytes()[..] {
            return Err(CiphertextError::OtherKey);
        }
        let residues: Vec<Residue> = numbers
            .par_chunks(2 * self.modulus_bytes())
            .enumerate()
            .map(|(index, number)| self.read_number(&Natural::from_be_bytes(number), index))
            .collect::<Result<_, _>>()?;
        self.check_units(&residues)?;
        Ok(residues.into_iter().map(|r| self.ciphertext(r)).collect())
    }

    /// The ciphertext with this number, checked like one that is read.
    pub fn ciphertext_from_number(&self, number: &Natural) -> Result<Ciphertext, CiphertextError> {
        let residue = self.read_number(number, 0)?;
        self.check_units(std::slice::from_ref(&residue))?;
        Ok(self.ciphertext(residue))
    }

    /// The number below N² that a ciphertext of this key is.
    pub(super) fn number(&self, ciphertext: &Ciphertext) -> Natural {
        let digits = self.ring().base_n(&ciphertext.residue);
        &digits.low + &(&digits.high * self.modulus())
    }

    fn modulus_bytes(&self) -> usize {
        self.bits().div_ceil(8)
    }

    fn read_number(&self, number: &Natural, index: usize) -> Result<Residue, CiphertextError> {
        if number.is_zero() {
            return Err(CiphertextError::Zero { index });
        }
        match number.cmp(self.modulus_squared()) {
            std::cmp::Ordering::Less => Ok(self.ring().residue(number)),
            std::cmp::Ordering::Equal => Err(CiphertextError::ModulusSquared { index }),
            std::cmp::Ordering::Greater => Err(CiphertextError::AboveModulusSquared { index }),
        }
    }

    /// Units by the dozen: a product is coprime to N if and only if every factor is, so the
    /// common divisor is computed once. Only if it fails the culprit is looked for.
    fn check_units(&self, residues: &[Residue]) -> Result<(), CiphertextError> {
        let ring = self.ring();
        let mut work = ring.workspace();
        let mut product = ring.one().clone();
        for residue in residues {
            ring.multiply_assign(&mut product, residue, &mut work);
        }
        if self.common_divisor(&product) == Natural::one() {
            return Ok(());
        }
        let culprit = |r: &Residue| self.common_divisor(r) != Natural::one();
        let index = residues.iter().position(culprit).unwrap_or(0);
        let whole = residues
            .get(index)
            .is_some_and(|r| ring.base_n(r).low.is_zero());
        Err(match whole {
            true => CiphertextError::MultipleOfModulus { index },
            false => CiphertextError::NotAUnit { index },
        })
    }

    fn common_divisor(&self, residue: &Residue) -> Natural {
        self.ring().base_n(residue).low.gcd_vartime(self.modulus())
    }
}

impl PrivateKey {
    /// The key as bytes, erased when dropped.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let length = self.public().bits().div_ceil(16);
        let (p, q) = self.primes();
        let [p, q] = [p, q].map(|x| Zeroizing::new(x.to_be_bytes(length).unwrap_or_default()));
        Zeroizing::new([PRIVATE_KEY.as_slice(), &p, &q].concat())
    }

    /// Reads and checks a key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let numbers = body(bytes, PRIVATE_KEY, |size| size.bits() / 8)?;
        let (p, q) = numbers.split_at(numbers.len() / 2);
        Self::from_primes(Natural::from_be_bytes(p), Natural::from_be_bytes(q))
    }
}

fn header(bytes: &[u8], expected: [u8; 2]) -> Result<&[u8], KeyError> {
    let Some((head, body)) = bytes.split_first_chunk::<2>() else {
        let (expected, found) = (2, bytes.len());
        return Err(KeyError::Length { expected, found });
    };
    match *head == expected {
        true => Ok(body),
        false => Err(KeyError::Format { found: *head }),
    }
}

/// What follows the header, if it has the length of one of the accepted sizes.
fn body(bytes: &[u8], head: [u8; 2], length: impl Fn(KeySize) -> usize) -> Result<&[u8], KeyError> {
    let body = header(bytes, head)?;
    let lengths = KeySize::ALL.map(length);
    if lengths.contains(&body.len()) {
        return Ok(body);
    }
    // Name the length that it most likely was meant to have: the next one.
    let next = lengths.into_iter().find(|&l| l > body.len());
    let expected = 2 + next.unwrap_or(lengths[2]);
    let found = bytes.len();
    Err(KeyError::Length { expected, found })
}
