//! Known answers for pairwise masks: announcements, masks and refusals for fixed seeds.
//!
//! A change of any byte is a change of the wire between versions. If it is meant, raise the version
//! of the protocol and write the file anew with `UPDATE_VECTORS=1`.
#![allow(clippy::unwrap_used)]

use chacha20::ChaCha20Rng;
use ed25519_dalek::{Signer, SigningKey};
use heda_crypto::masking::{ANNOUNCEMENT_BYTES, MaskSetup, MaskingError, Masks, Origin, Roster};
use rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/masking.json");

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Vectors {
    about: String,
    agreements: Vec<Agreement>,
    refusals: Vec<Refusal>,
}

/// Providers that agree, what they announce and the masks that they draw. Provider n signs with 32
/// bytes n + 1 and draws its key from ChaCha20 with 32 bytes `seed` + n.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Agreement {
    job: String,
    providers: u8,
    seed: u8,
    announcements: Vec<String>,
    draws: Vec<Draw>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Draw {
    purpose: String,
    round: u64,
    /// Provider by provider, each mask as six bytes, little-endian.
    masks: Vec<String>,
}

/// What provider 0 says to announcements that the data user relays.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Refusal {
    what: String,
    job: String,
    providers: u8,
    seed: u8,
    relayed: String,
    error: String,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn identity(number: u8) -> SigningKey {
    SigningKey::from_bytes(&[number + 1; 32])
}

fn announce(job: &str, providers: u8, seed: u8) -> Vec<(MaskSetup, Vec<u8>)> {
    announce_from(Origin::System, job, providers, seed)
}

fn announce_from(origin: Origin, job: &str, providers: u8, seed: u8) -> Vec<(MaskSetup, Vec<u8>)> {
    let keys: Vec<_> = (0..providers)
        .map(|n| identity(n).verifying_key())
        .collect();
    let announced = (0..providers).map(|n| {
        let roster = Roster::new(job.as_bytes(), &keys).unwrap();
        let mut rng = ChaCha20Rng::from_seed([seed + n; 32]);
        MaskSetup::announce(roster, &identity(n), origin, &mut rng).unwrap()
    });
    announced.collect()
}

fn six_bytes(masks: &[u64]) -> String {
    masks
        .iter()
        .map(|mask| hex(&mask.to_le_bytes()[..6]))
        .collect()
}

fn agreement(job: &str, providers: u8, seed: u8) -> Agreement {
    let (setups, announcements): (Vec<_>, Vec<_>) =
        announce(job, providers, seed).into_iter().unzip();
    let relayed = announcements.concat();
    let mut parties: Vec<Masks> = setups
        .into_iter()
        .map(|setup| setup.finish(&relayed).unwrap())
        .collect();
    let draws = [("gradient", 0, 3), ("gradient", 7, 1), ("", u64::MAX, 2)].map(
        |(purpose, round, length)| {
            let masks = parties
                .iter_mut()
                .map(|masks| masks.stream(purpose, round, length).unwrap());
            let masks: Vec<_> = masks.collect();
            for place in 0..length {
                let sum = masks
                    .iter()
                    .fold(0u64, |sum, masks| sum.wrapping_add(masks[place]));
                assert_eq!(sum % (1 << 48), 0, "masks cancel");
            }
            Draw {
                purpose: purpose.into(),
                round,
                masks: masks.iter().map(|masks| six_bytes(masks)).collect(),
            }
        },
    );
    Agreement {
        job: job.into(),
        providers,
        seed,
        announcements: announcements.iter().map(|bytes| hex(bytes)).collect(),
        draws: draws.into(),
    }
}

/// The announcement of a key that is none, signed as the protocol says. Written without the code
/// under test, so that the statement that is signed is pinned too.
fn signed_key(job: &str, providers: u8, signer: u8, key: [u8; 32]) -> Vec<u8> {
    let mut identities: Vec<_> = (0..providers)
        .map(|n| identity(n).verifying_key().to_bytes())
        .collect();
    identities.sort_unstable();
    let mut roster = Sha256::new_with_prefix(b"heda masking: roster");
    roster.update((job.len() as u64).to_le_bytes());
    roster.update(job);
    identities
        .iter()
        .for_each(|identity| roster.update(identity));
    let own = identity(signer).verifying_key().to_bytes();
    let prefix = &b"heda masking: announcement"[..];
    let statement = [prefix, &roster.finalize(), &own, &key, &[0]].concat();
    let signature = identity(signer).sign(&statement).to_bytes();
    [&own[..], &key, &[0], &signature].concat()
}

fn refused(job: &str, providers: u8, seed: u8, relayed: &[u8]) -> MaskingError {
    let (setup, _) = announce(job, providers, seed).swap_remove(0);
    setup.finish(relayed).unwrap_err()
}

fn refusals() -> Vec<Refusal> {
    let (job, providers, seed) = ("a job", 3, 40);
    let own: Vec<Vec<u8>> = announce(job, providers, seed)
        .into_iter()
        .map(|(_, bytes)| bytes)
        .collect();
    let other_job = announce("another job", providers, seed).swap_remove(1).1;
    let other_roster = announce(job, 2, seed).swap_remove(1).1;
    let older = announce(job, providers, seed + 9).swap_remove(0).1;
    let stranger = announce(job, 4, seed).swap_remove(3).1;
    let seeded = announce_from(Origin::Seed, job, providers, seed);
    let seeded = seeded.into_iter().nth(1).unwrap().1;
    let mut flipped = own[1].clone();
    flipped[ANNOUNCEMENT_BYTES - 1] ^= 1;
    let with = |first: &[u8], second: &[u8]| [first, second, &own[2]].concat();
    let cases = [
        ("nothing", Vec::new()),
        ("one announcement too few", own[..2].concat()),
        ("one byte too many", [own.concat(), vec![0]].concat()),
        ("an announcement twice", with(&own[0], &own[2])),
        ("a stranger's", with(&own[0], &stranger)),
        ("a changed signature", with(&own[0], &flipped)),
        ("one of another job", with(&own[0], &other_job)),
        ("one for other providers", with(&own[0], &other_roster)),
        ("an older one of our own", with(&older, &own[1])),
        ("one of a seeded provider", with(&own[0], &seeded)),
        (
            "a signed key that is no group element",
            with(&own[0], &signed_key(job, 3, 1, [0xff; 32])),
        ),
        (
            "a signed key that is the neutral element",
            with(&own[0], &signed_key(job, 3, 1, [0; 32])),
        ),
    ];
    let refusal = |(what, relayed): (&str, Vec<u8>)| Refusal {
        what: what.into(),
        job: job.into(),
        providers,
        seed,
        error: refused(job, providers, seed, &relayed).to_string(),
        relayed: hex(&relayed),
    };
    cases.map(refusal).into()
}

#[test]
fn announcements_masks_and_refusals_are_those_of_the_file() {
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        let vectors = Vectors {
            about: "Pairwise masks: written and read by fuzz/tests/masking_vectors.rs".into(),
            agreements: vec![
                agreement("", 1, 10),
                agreement("two", 2, 20),
                agreement("a job", 4, 30),
            ],
            refusals: refusals(),
        };
        let text = serde_json::to_string_pretty(&vectors).unwrap();
        std::fs::write(FILE, text + "\n").unwrap();
    }
    let vectors: Vectors = serde_json::from_str(&std::fs::read_to_string(FILE).unwrap()).unwrap();
    let mut run = 0;
    for expected in &vectors.agreements {
        assert_eq!(
            agreement(&expected.job, expected.providers, expected.seed),
            *expected
        );
        run += expected.announcements.len() + expected.draws.len();
    }
    for refusal in &vectors.refusals {
        let Refusal {
            what,
            job,
            providers,
            seed,
            relayed,
            error,
        } = refusal;
        let told = refused(job, *providers, *seed, &unhex(relayed)).to_string();
        assert_eq!(told, *error, "{what}");
        run += 1;
    }
    // Seven announcements, nine draws, twelve refusals.
    assert_eq!(run, 28);
}
