//! Bad input is refused, each kind with its own error.

use crate::lattice::wire::HEADER_BYTES;
use crate::lattice::*;
use crate::random::Randomness;
use std::sync::Arc;

const ROWS: usize = 5;
const COLUMNS: usize = 3;

struct Messages {
    key: SecretKey,
    matrix: EncryptedMatrix,
    pool: ZeroPool,
    scores: Vec<u8>,
    sums: Vec<u8>,
}

fn messages(seed: u64) -> Messages {
    let mut rng = Randomness::seeded(seed).fork("refusal", 0).unwrap();
    let key = SecretKey::generate(&mut rng).unwrap();
    let matrix = key
        .encrypt_matrix(&[7; ROWS * COLUMNS], ROWS, COLUMNS, &mut rng)
        .unwrap();
    let mut pool = ZeroPool::on_demand(Arc::clone(key.public_key()), &mut rng);
    let scores = matrix.scores(&[1; COLUMNS], &[2; ROWS], &mut pool).unwrap();
    let sums = matrix
        .weighted_sums(&[1; ROWS], &[2; COLUMNS], &mut pool)
        .unwrap();
    Messages {
        key,
        matrix,
        pool,
        scores,
        sums,
    }
}

fn changed(bytes: &[u8], at: usize, to: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] = to;
    bytes
}

#[test]
fn headers_are_checked_field_by_field() {
    let Messages { key, scores, .. } = messages(31);
    let read = |bytes: &[u8]| key.decrypt_scores(bytes, ROWS, COLUMNS).map(|_| ());
    assert_eq!(read(&scores), Ok(()));
    assert_eq!(
        read(&changed(&scores, 0, b'X')),
        Err(LatticeError::UnknownFormat)
    );
    assert_eq!(
        read(&changed(&scores, 4, 2)),
        Err(LatticeError::UnknownFormat)
    );
    let kind = LatticeError::WrongKind {
        expected: "encrypted scores",
        found: 4,
    };
    assert_eq!(read(&changed(&scores, 5, 4)), Err(kind));
    let degree = LatticeError::WrongDegree {
        expected: 13,
        found: 12,
    };
    assert_eq!(read(&changed(&scores, 6, 12)), Err(degree));
    let level = LatticeError::WrongLevel {
        expected: 1,
        found: 3,
    };
    assert_eq!(read(&changed(&scores, 7, 3)), Err(level));
    let modulus = scores[8] ^ 1;
    assert_eq!(
        read(&changed(&scores, 8, modulus)),
        Err(LatticeError::WrongModulus)
    );
    let owner = scores[16] ^ 1;
    assert_eq!(
        read(&changed(&scores, 16, owner)),
        Err(LatticeError::OtherKey)
    );
    let layout = LatticeError::WrongLayout {
        expected: COLUMNS,
        found: 1,
    };
    assert_eq!(read(&changed(&scores, 40, 1)), Err(layout));
}

#[test]
fn shapes_and_lengths_are_checked() {
    let Messages {
        key,
        matrix,
        scores,
        sums,
        ..
    } = messages(32);
    assert!(matches!(
        key.decrypt_scores(&scores, ROWS + 1, COLUMNS),
        Err(LatticeError::WrongShape {
            rows: 6,
            found_rows: 5,
            ..
        })
    ));
    assert!(matches!(
        key.decrypt_sums(&scores, ROWS, COLUMNS),
        Err(LatticeError::WrongKind { found: 3, .. })
    ));
    for length in [0, 4, HEADER_BYTES - 1, HEADER_BYTES, sums.len() - 1] {
        let read = key.decrypt_sums(&sums[..length], ROWS, COLUMNS);
        let expected = sums.len();
        assert_eq!(
            read,
            Err(LatticeError::WrongLength {
                expected,
                found: length
            })
        );
    }
    let mut longer = matrix.to_bytes();
    longer.push(0);
    assert!(matches!(
        EncryptedMatrix::from_bytes(&longer, ROWS, COLUMNS, key.public_key()),
        Err(LatticeError::WrongLength { .. })
    ));
}

#[test]
fn residues_must_be_reduced() {
    let Messages {
        key,
        matrix,
        mut sums,
        ..
    } = messages(33);
    sums[HEADER_BYTES..HEADER_BYTES + 8].fill(0xff);
    let read = key.decrypt_sums(&sums, ROWS, COLUMNS);
    assert_eq!(read, Err(LatticeError::NotCanonical));
    let mut bytes = matrix.to_bytes();
    bytes[HEADER_BYTES + 32..HEADER_BYTES + 40].fill(0xff);
    let read = EncryptedMatrix::from_bytes(&bytes, ROWS, COLUMNS, key.public_key());
    assert_eq!(read.err(), Some(LatticeError::NotCanonical));
}

#[test]
fn keys_of_other_parties_are_refused() {
    let (mine, mut other) = (messages(34), messages(35));
    let bytes = mine.matrix.to_bytes();
    let read = EncryptedMatrix::from_bytes(&bytes, ROWS, COLUMNS, other.key.public_key());
    assert_eq!(read.err(), Some(LatticeError::OtherKey));
    let answer = mine
        .matrix
        .scores(&[1; COLUMNS], &[0; ROWS], &mut other.pool);
    assert_eq!(answer, Err(LatticeError::OtherKey));
    let read = other.key.decrypt_scores(&mine.scores, ROWS, COLUMNS);
    assert_eq!(read, Err(LatticeError::OtherKey));
    let key = mine.key.public_key().to_bytes();
    let damaged = changed(&key, key.len() - 1, key[key.len() - 1] ^ 1);
    assert_eq!(
        PublicKey::from_bytes(&damaged).err(),
        Some(LatticeError::DamagedKey)
    );
}

#[test]
fn vectors_must_fit_the_matrix() {
    let Messages {
        key,
        matrix,
        mut pool,
        ..
    } = messages(36);
    let mut rng = Randomness::seeded(1).fork("unused", 0).unwrap();
    let wrong = |what, expected, found| LatticeError::WrongCount {
        what,
        expected,
        found,
    };
    let encrypted = key.encrypt_matrix(&[0; 5], 2, 3, &mut rng);
    assert_eq!(encrypted.err(), Some(wrong("matrix", 6, 5)));
    let weights = matrix.scores(&[0; COLUMNS + 1], &[0; ROWS], &mut pool);
    assert_eq!(weights, Err(wrong("weights of the columns", 3, 4)));
    let mask = matrix.weighted_sums(&[0; ROWS], &[0; 1], &mut pool);
    assert_eq!(mask, Err(wrong("mask of the sums", 3, 1)));
    let large = matrix.scores(&[0, 1 << MODULUS_BITS, 0], &[0; ROWS], &mut pool);
    let what = "weights of the columns";
    assert_eq!(large, Err(LatticeError::NotReduced { what, index: 1 }));
    let rows = key.encrypt_matrix(&[], ROW_LIMIT + 1, 1, &mut rng).err();
    assert_eq!(
        rows,
        Some(LatticeError::TooManyRows {
            rows: ROW_LIMIT + 1
        })
    );
}

#[test]
fn messages_round_trip() {
    let Messages {
        key,
        matrix,
        mut pool,
        ..
    } = messages(37);
    let public = PublicKey::from_bytes(&key.public_key().to_bytes()).unwrap();
    assert_eq!(public.fingerprint(), key.public_key().fingerprint());
    assert!(public.a == key.public_key().a && public.b == key.public_key().b);
    let bytes = matrix.to_bytes();
    assert_eq!(EncryptedMatrix::byte_length(ROWS, COLUMNS), Ok(bytes.len()));
    let read = EncryptedMatrix::from_bytes(&bytes, ROWS, COLUMNS, &public).unwrap();
    assert!(read.to_bytes() == bytes);
    let answer = read.scores(&[1, 2, 3], &[5; ROWS], &mut pool).unwrap();
    assert_eq!(
        key.decrypt_scores(&answer, ROWS, COLUMNS).unwrap(),
        [47; ROWS]
    );
}

#[test]
fn debug_shows_no_secret() {
    let Messages {
        key, matrix, pool, ..
    } = messages(38);
    let shown = format!("{key:?} {matrix:?} {pool:?}");
    assert!(shown.len() < 150, "{shown}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn any_bytes_are_refused_without_panic(at in 0usize..200, to: u8, cut in 0usize..4000) {
        let (key, scores) = FIXED.get_or_init(|| {
            let Messages { key, scores, .. } = messages(39);
            (key, scores)
        });
        let mut bytes = changed(scores, at, to);
        bytes.truncate(bytes.len() - cut);
        let read = key.decrypt_scores(&bytes, ROWS, COLUMNS);
        proptest::prop_assert!(cut == 0 || read.is_err());
    }
}

static FIXED: std::sync::OnceLock<(SecretKey, Vec<u8>)> = std::sync::OnceLock::new();
