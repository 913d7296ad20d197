//! RSA keys and ciphertexts as bytes.
//!
//! | what | bytes |
//! | --- | --- |
//! | public key | 2, N |
//! | private key | 3, p, q, each of half the length of N |
//! | ciphertexts | 4, fingerprint of the key (16), each number of the length of N |
//!
//! Numbers are big-endian of fixed length; how many are meant is known from the context.

use super::{RsaCiphertext, RsaError, RsaFingerprint, RsaPrivateKey, RsaPublicKey};
use crate::integer::Natural;
use crate::paillier::KeySize;
use zeroize::Zeroizing;

const PUBLIC_KEY: u8 = 2;
const PRIVATE_KEY: u8 = 3;
const CIPHERTEXTS: u8 = 4;
const HEADER: usize = 1 + RsaFingerprint::LENGTH;

impl RsaPublicKey {
    /// The key as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let number = self.modulus().to_be_bytes(self.length());
        [[PUBLIC_KEY].as_slice(), &number.unwrap_or_default()].concat()
    }

    /// Reads and checks a key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RsaError> {
        let number = key_body(bytes, PUBLIC_KEY)?;
        Self::from_modulus(Natural::from_be_bytes(number))
    }

    /// As [`from_bytes`](Self::from_bytes), for keys that are too short to protect anything.
    #[doc(hidden)]
    pub fn from_bytes_insecure_for_tests(bytes: &[u8]) -> Result<Self, RsaError> {
        let number = tagged(bytes, PUBLIC_KEY)?;
        Self::from_modulus_insecure_for_tests(Natural::from_be_bytes(number))
    }

    /// How many bytes `count` ciphertexts take together; `None` beyond all memory.
    pub fn encoded_length(&self, count: usize) -> Option<usize> {
        count.checked_mul(self.length())?.checked_add(HEADER)
    }

    /// Ciphertexts of this key as bytes. Those of another key are an error.
    pub fn encode(&self, ciphertexts: &[RsaCiphertext]) -> Result<Vec<u8>, RsaError> {
        let mut bytes = vec![CIPHERTEXTS];
        bytes.extend_from_slice(self.fingerprint().as_bytes());
        for ciphertext in ciphertexts {
            self.check(ciphertext.fingerprint)?;
            let number = self.ring().natural(&ciphertext.residue);
            bytes.extend(number.to_be_bytes(self.length()).unwrap_or_default());
        }
        Ok(bytes)
    }

    /// Reads exactly `count` ciphertexts of this key and checks that each is below N.
    ///
    /// Zero and other non-units are numbers like others here: textbook RSA maps them to each other.
    pub fn decode(&self, bytes: &[u8], count: usize) -> Result<Vec<RsaCiphertext>, RsaError> {
        let expected = self.encoded_length(count).unwrap_or(usize::MAX);
        let found = bytes.len();
        if found != expected {
            return Err(RsaError::Length { expected, found });
        }
        let (head, numbers) = tagged(bytes, CIPHERTEXTS)?.split_at(HEADER - 1);
        if head != self.fingerprint().as_bytes() {
            return Err(RsaError::OtherKey);
        }
        let numbers = numbers.chunks(self.length()).enumerate();
        numbers
            .map(|(index, number)| self.read(number, index))
            .collect()
    }

    fn read(&self, bytes: &[u8], index: usize) -> Result<RsaCiphertext, RsaError> {
        let number = Natural::from_be_bytes(bytes);
        if number >= *self.modulus() {
            return Err(RsaError::NotBelowModulus { index });
        }
        Ok(self.ciphertext(self.ring().residue(&number)))
    }

    fn length(&self) -> usize {
        self.bits().div_ceil(8)
    }
}

impl RsaPrivateKey {
    /// The key as bytes, erased when dropped.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let length = self.public().bits().div_ceil(16);
        let halves = [&self.p.prime, &self.q.prime];
        let [p, q] = halves.map(|x| Zeroizing::new(x.to_be_bytes(length).unwrap_or_default()));
        Zeroizing::new([[PRIVATE_KEY].as_slice(), &p, &q].concat())
    }

    /// Reads and checks a key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RsaError> {
        let numbers = key_body(bytes, PRIVATE_KEY)?;
        let (p, q) = numbers.split_at(numbers.len() / 2);
        Self::from_primes(Natural::from_be_bytes(p), Natural::from_be_bytes(q))
    }
}

fn tagged(bytes: &[u8], tag: u8) -> Result<&[u8], RsaError> {
    match bytes.split_first() {
        Some((&found, rest)) if found == tag => Ok(rest),
        Some((&found, _)) => Err(RsaError::Format { found }),
        None => Err(RsaError::Length {
            expected: 1,
            found: 0,
        }),
    }
}

fn key_body(bytes: &[u8], tag: u8) -> Result<&[u8], RsaError> {
    let body = tagged(bytes, tag)?;
    let lengths = KeySize::ALL.map(|size| size.bits() / 8);
    if lengths.contains(&body.len()) {
        return Ok(body);
    }
    let next = lengths.into_iter().find(|&l| l > body.len());
    let expected = 1 + next.unwrap_or(lengths[2]);
    let found = bytes.len();
    Err(RsaError::Length { expected, found })
}
