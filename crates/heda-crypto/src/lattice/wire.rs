//! Messages as bytes: one header for all of them, then residues of 62 bits.
//!
//! A decoder knows the exact length before it reads, and refuses residues that are not below
//! their prime, so every value has exactly one encoding.

use super::error::LatticeError;
use super::layout::SlotLayout;
use super::parameters::{DEGREE_LOG, MODULUS_BITS, PRIME_BITS, PRIMES};
use sha2::{Digest, Sha256};

const MAGIC: [u8; 4] = *b"HEDL";
const VERSION: u8 = 1;
/// Magic, version, kind, degree, level, modulus, fingerprint, rows, columns, width.
pub(super) const HEADER_BYTES: usize = 4 + 1 + 1 + 1 + 1 + 8 + 16 + 4 + 4 + 4;

/// Which message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    PublicKey = 1,
    Matrix = 2,
    Scores = 3,
    Sums = 4,
}

impl Kind {
    /// Primes in the modulus of this kind of message: answers are switched to the last one.
    fn level(self) -> u8 {
        match self {
            Self::PublicKey | Self::Matrix => PRIMES.len() as u8,
            Self::Scores | Self::Sums => 1,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::PublicKey => "a public key",
            Self::Matrix => "an encrypted matrix",
            Self::Scores => "encrypted scores",
            Self::Sums => "encrypted weighted sums",
        }
    }
}

/// Names a public key: the start of a hash of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatticeFingerprint([u8; 16]);

impl LatticeFingerprint {
    pub(super) fn of(key_body: &[u8]) -> Self {
        let hash = Sha256::new()
            .chain_update(b"heda lattice public key")
            .chain_update(key_body);
        Self(first_bytes(&hash.finalize()))
    }

    /// The fingerprint as bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

fn first_bytes<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|i| bytes[i])
}

fn modulus_tag(level: u8) -> [u8; 8] {
    let mut hash = Sha256::new().chain_update(b"heda lattice moduli");
    hash.update(MODULUS_BITS.to_le_bytes());
    for prime in &PRIMES[..usize::from(level)] {
        hash.update(prime.to_le_bytes());
    }
    first_bytes(&hash.finalize())
}

/// Begins a message; a public key has no layout.
pub(super) fn header(
    kind: Kind,
    fingerprint: &LatticeFingerprint,
    layout: Option<&SlotLayout>,
) -> Vec<u8> {
    let mut bytes = Vec::from(MAGIC);
    bytes.extend([VERSION, kind as u8, DEGREE_LOG, kind.level()]);
    bytes.extend(modulus_tag(kind.level()));
    bytes.extend(fingerprint.0);
    let shape = layout.map_or([0; 3], |l| [l.rows, l.columns, l.width]);
    bytes.extend(
        shape
            .iter()
            .flat_map(|number| (*number as u32).to_le_bytes()),
    );
    bytes
}

/// Checks a header and the length of the body; gives the fingerprint and the body.
pub(super) fn open<'a>(
    bytes: &'a [u8],
    kind: Kind,
    layout: Option<&SlotLayout>,
    body_bytes: usize,
) -> Result<(LatticeFingerprint, &'a [u8]), LatticeError> {
    let Some((header, body)) = bytes.split_at_checked(HEADER_BYTES) else {
        let expected = HEADER_BYTES + body_bytes;
        return Err(LatticeError::WrongLength {
            expected,
            found: bytes.len(),
        });
    };
    check_parameters(header, kind)?;
    check_layout(header, layout)?;
    if body.len() != body_bytes {
        let expected = HEADER_BYTES + body_bytes;
        return Err(LatticeError::WrongLength {
            expected,
            found: bytes.len(),
        });
    }
    Ok((LatticeFingerprint(first_bytes(&header[16..])), body))
}

fn check_parameters(header: &[u8], kind: Kind) -> Result<(), LatticeError> {
    if header[..4] != MAGIC || header[4] != VERSION {
        return Err(LatticeError::UnknownFormat);
    }
    if header[5] != kind as u8 {
        return Err(LatticeError::WrongKind {
            expected: kind.name(),
            found: header[5],
        });
    }
    if header[6] != DEGREE_LOG {
        return Err(LatticeError::WrongDegree {
            expected: DEGREE_LOG,
            found: header[6],
        });
    }
    if header[7] != kind.level() {
        return Err(LatticeError::WrongLevel {
            expected: kind.level(),
            found: header[7],
        });
    }
    if header[8..16] != modulus_tag(kind.level()) {
        return Err(LatticeError::WrongModulus);
    }
    Ok(())
}

fn check_layout(header: &[u8], layout: Option<&SlotLayout>) -> Result<(), LatticeError> {
    let number = |at: usize| u32::from_le_bytes(first_bytes(&header[at..]));
    let [found_rows, found_columns, found] = [number(32), number(36), number(40)];
    let [rows, columns, width] = layout.map_or([0; 3], |l| [l.rows, l.columns, l.width]);
    if (found_rows as usize, found_columns as usize) != (rows, columns) {
        return Err(LatticeError::WrongShape {
            rows,
            columns,
            found_rows,
            found_columns,
        });
    }
    if found as usize != width {
        return Err(LatticeError::WrongLayout {
            expected: width,
            found,
        });
    }
    Ok(())
}

/// Bytes of a run of residues.
pub(super) fn packed_bytes(count: usize) -> usize {
    (count * PRIME_BITS as usize).div_ceil(8)
}

/// Appends residues, 62 bits each, lowest bits first.
pub(super) fn pack(bytes: &mut Vec<u8>, residues: impl IntoIterator<Item = u64>) {
    let (mut pending, mut bits) = (0u128, 0u32);
    for residue in residues {
        pending |= u128::from(residue) << bits;
        bits += PRIME_BITS;
        if bits >= u64::BITS {
            bytes.extend_from_slice(&(pending as u64).to_le_bytes());
            pending >>= u64::BITS;
            bits -= u64::BITS;
        }
    }
    let rest = bits.div_ceil(8) as usize;
    bytes.extend_from_slice(&(pending as u64).to_le_bytes()[..rest]);
}

/// Reads residues of one prime that fill `bytes` exactly.
pub(super) fn unpack(bytes: &[u8], count: usize, prime: u64) -> Result<Vec<u64>, LatticeError> {
    const MASK: u64 = (1 << PRIME_BITS) - 1;
    if bytes.len() != packed_bytes(count) {
        let expected = packed_bytes(count);
        return Err(LatticeError::WrongLength {
            expected,
            found: bytes.len(),
        });
    }
    let (mut pending, mut bits) = (0u128, 0u32);
    let (words, rest) = bytes.as_chunks();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let mut words = words.chain([little_endian(rest)]);
    let mut residues = Vec::with_capacity(count);
    for _ in 0..count {
        if bits < PRIME_BITS {
            pending |= u128::from(words.next().unwrap_or(0)) << bits;
            bits += u64::BITS;
        }
        residues.push(pending as u64 & MASK);
        pending >>= PRIME_BITS;
        bits -= PRIME_BITS;
    }
    if pending != 0 || residues.iter().any(|residue| *residue >= prime) {
        return Err(LatticeError::NotCanonical);
    }
    Ok(residues)
}

/// A number of at most 8 bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residues_round_trip_at_every_length() {
        for count in [0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 500] {
            let residues: Vec<u64> = (0..count as u64)
                .map(|i| PRIMES[2] - 1 - i * 0x0123_4567_89ab)
                .collect();
            let mut bytes = Vec::new();
            pack(&mut bytes, residues.iter().copied());
            assert_eq!(bytes.len(), packed_bytes(count));
            assert_eq!(unpack(&bytes, count, PRIMES[2]).unwrap(), residues);
        }
    }

    #[test]
    fn unreduced_residues_and_stray_bits_are_refused() {
        let mut bytes = Vec::new();
        pack(&mut bytes, [PRIMES[0]]);
        assert_eq!(
            unpack(&bytes, 1, PRIMES[0]),
            Err(LatticeError::NotCanonical)
        );
        let mut bytes = Vec::new();
        pack(&mut bytes, [5]);
        bytes[7] |= 0x80;
        assert_eq!(
            unpack(&bytes, 1, PRIMES[0]),
            Err(LatticeError::NotCanonical)
        );
    }
}
