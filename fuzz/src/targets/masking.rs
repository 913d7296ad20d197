//! Announcements of mask keys, as the data user relays them.

use crate::driver::{Target, Verdict};
use ed25519_dalek::SigningKey;
use heda_crypto::masking::{MaskSetup, Origin, Roster};
use heda_crypto::random::Randomness;

fn identity(number: u64) -> SigningKey {
    SigningKey::from_bytes(&[number as u8 + 1; 32])
}

fn roster() -> Roster {
    let providers: Vec<_> = (0..3).map(|n| identity(n).verifying_key()).collect();
    Roster::new(b"job", &providers).expect("three providers")
}

fn announce(number: u64) -> (MaskSetup, Vec<u8>) {
    let source = Randomness::seeded(1);
    let mut rng = source
        .fork("announce", number)
        .expect("a seeded source always gives");
    MaskSetup::announce(roster(), &identity(number), Origin::System, &mut rng).expect("a member")
}

/// All announcements, one after another.
pub(super) fn announcements() -> Target {
    let relayed: Vec<u8> = (0..3).flat_map(|number| announce(number).1).collect();
    let decode = |input: &[u8]| Verdict::from(announce(0).0.finish(input));
    Target::new(vec![relayed], decode)
}

/// One announcement, as the data user reads it.
pub(super) fn origin() -> Target {
    let decode = |input: &[u8]| {
        let by = identity(1).verifying_key();
        Verdict::from(roster().announced_origin(input, &by))
    };
    Target::new(vec![announce(1).1], decode)
}
