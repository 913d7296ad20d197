use super::*;
use crate::random::Randomness;

fn identities(count: u64) -> Vec<SigningKey> {
    let source = Randomness::seeded(1);
    let rng = |n| source.fork("identity", n).unwrap();
    (0..count)
        .map(|n| SigningKey::generate(&mut rng(n)))
        .collect()
}

fn roster(job: &[u8], identities: &[SigningKey]) -> Roster {
    let keys: Vec<_> = identities.iter().map(SigningKey::verifying_key).collect();
    Roster::new(job, &keys).unwrap()
}

fn announce(job: &[u8], all: &[SigningKey], own: usize, seed: u64) -> (MaskSetup, Vec<u8>) {
    announce_from(Origin::System, job, all, own, seed)
}

fn announce_from(
    origin: Origin,
    job: &[u8],
    all: &[SigningKey],
    own: usize,
    seed: u64,
) -> (MaskSetup, Vec<u8>) {
    let mut rng = Randomness::seeded(seed)
        .fork("announce", own as u64)
        .unwrap();
    MaskSetup::announce(roster(job, all), &all[own], origin, &mut rng).unwrap()
}

fn announcements(job: &[u8], all: &[SigningKey], seed: u64) -> (Vec<MaskSetup>, Vec<Vec<u8>>) {
    (0..all.len())
        .map(|own| announce(job, all, own, seed))
        .unzip()
}

fn masks(all: &[SigningKey], seed: u64) -> Vec<Masks> {
    let (setups, messages) = announcements(b"job", all, seed);
    let relayed = messages.concat();
    setups
        .into_iter()
        .map(|setup| setup.finish(&relayed).unwrap())
        .collect()
}

fn total(masks: &[Zeroizing<Vec<u64>>]) -> Vec<u64> {
    let length = masks[0].len();
    (0..length)
        .map(|n| masks.iter().fold(0, |sum, mask| (sum + mask[n]) & MASK))
        .collect()
}

/// Provider 0 of three finishes with announcements that were changed on the way.
fn refused(change: impl Fn(&mut Vec<Vec<u8>>)) -> MaskingError {
    let all = identities(3);
    let (mut setups, mut messages) = announcements(b"job", &all, 1);
    change(&mut messages);
    setups.remove(0).finish(&messages.concat()).unwrap_err()
}

#[test]
fn masks_of_all_cancel_and_those_of_fewer_do_not() {
    for count in 2..=5 {
        let mut masks = masks(&identities(count), 1);
        for (purpose, round) in [("gradient", 0), ("gradient", 1), ("scores", 0)] {
            let drawn: Vec<_> = masks
                .iter_mut()
                .map(|m| m.stream(purpose, round, 100).unwrap())
                .collect();
            assert_eq!(total(&drawn), vec![0; 100]);
            assert!(drawn.iter().all(|mask| mask.iter().all(|m| *m <= MASK)));
            assert!(total(&drawn[1..]).iter().all(|sum| *sum != 0));
        }
        assert!(!masks[0].is_alone());
    }
}

#[test]
fn the_order_of_relaying_does_not_matter() {
    let all = identities(3);
    let (setups, mut messages) = announcements(b"job", &all, 1);
    let mut drawn = Vec::new();
    for setup in setups {
        messages.rotate_left(1);
        let mut masks = setup.finish(&messages.concat()).unwrap();
        drawn.push(masks.stream("gradient", 7, 9).unwrap());
    }
    assert_eq!(total(&drawn), vec![0; 9]);
}

#[test]
fn a_single_provider_is_alone_and_its_mask_is_zero() {
    let mut masks = masks(&identities(1), 1);
    assert!(masks[0].is_alone());
    assert_eq!(*masks[0].stream("gradient", 0, 5).unwrap(), vec![0; 5]);
}

#[test]
fn masks_look_random_and_depend_on_purpose_round_and_keys() {
    let all = identities(2);
    let draw = |seed, purpose, round| masks(&all, seed)[0].stream(purpose, round, 4000).unwrap();
    let first = draw(1, "gradient", 1);
    for other in [
        draw(1, "scores", 1),
        draw(1, "gradient", 2),
        draw(2, "gradient", 1),
    ] {
        assert!(first.iter().zip(other.iter()).all(|(a, b)| a != b));
    }
    let ones: u32 = first.iter().map(|mask| mask.count_ones()).sum();
    let bits = 4000.0 * f64::from(MASK_BITS);
    let deviations = (f64::from(ones) - bits / 2.0).abs() / (bits / 4.0).sqrt();
    assert!(deviations < 4.5, "{deviations}");
}

#[test]
fn masks_cancel_only_between_providers_that_heard_the_same_in_the_same_order() {
    let all = identities(3);
    let told: [&[&[u8]]; 7] = [
        &[b"a", b"b"],
        &[b"b", b"a"],
        &[b"ab"],
        &[b"a"],
        &[b"a", b"b", b""],
        &[b"a", b"c"],
        &[],
    ];
    for victim in told {
        let mut parties = masks(&all, 1);
        for (place, masks) in parties.iter_mut().enumerate() {
            let heard = if place == 0 { victim } else { told[0] };
            heard.iter().for_each(|message| masks.agree(message));
        }
        let same = parties[0].agreed() == parties[1].agreed();
        let draw = |masks: &mut Masks| masks.stream("gradient", 1, 50).unwrap();
        let drawn: Vec<_> = parties.iter_mut().map(draw).collect();
        let cancelled = total(&drawn).iter().filter(|sum| **sum == 0).count();
        let expected = if victim == told[0] {
            (true, 50)
        } else {
            (false, 0)
        };
        assert_eq!((same, cancelled), expected, "{victim:?}");
    }
}

/// The context of the roster is signed and hashed into every pair.
#[test]
fn providers_of_another_proposal_do_not_share_masks() {
    let all = identities(2);
    let (mut setups, own) = announcements(b"proposal", &all, 1);
    let (_, other) = announcements(b"proposam", &all, 1);
    let relayed = [&own[0][..], &other[1]].concat();
    let refused = setups.swap_remove(0).finish(&relayed).unwrap_err();
    assert_eq!(refused, MaskingError::BadSignature(1));
    // An identity is no end of a context.
    let [first, second] = [&all[0], &all[1]].map(|key| key.verifying_key());
    let (first, second) = match first.to_bytes() < second.to_bytes() {
        true => (first, second),
        false => (second, first),
    };
    let longer = [&b"proposal"[..], first.as_bytes()].concat();
    let longer = Roster::new(&longer, &[second]).unwrap();
    assert_ne!(
        longer.digest,
        Roster::new(b"proposal", &[first, second]).unwrap().digest
    );
}

/// Step by step as `docs/masking.md` says, from what one provider knows: a part that is missing from a key, the
/// shared secret above all, would still give masks that cancel and look random.
#[test]
fn masks_are_those_of_the_document() {
    let all = identities(2);
    let (setups, messages) = announcements(b"job", &all, 1);
    let keys: Vec<[u8; 32]> = setups
        .iter()
        .map(|setup| setup.ephemeral.to_bytes())
        .collect();
    let other = setups[1].ephemeral.decompress().unwrap();
    let shared = (other * *setups[0].secret).compress().to_bytes();
    let names: Vec<[u8; 32]> = all
        .iter()
        .map(|key| key.verifying_key().to_bytes())
        .collect();
    let order = if names[0] < names[1] { [0, 1] } else { [1, 0] };
    let hash = |parts: &[&[u8]]| -> [u8; 32] { Sha256::digest(parts.concat()).into() };
    let length = |text: &[u8]| (text.len() as u64).to_le_bytes();
    let [low, high] = order;
    let roster = hash(&[
        b"heda masking: roster",
        &length(b"job"),
        b"job",
        &names[low],
        &names[high],
    ]);
    let pair = hash(&[
        b"heda masking: pair",
        &roster,
        &names[low],
        &keys[low],
        &names[high],
        &keys[high],
        &shared,
    ]);
    let agreed = hash(&[
        b"heda masking: agreed",
        &roster,
        &length(b"split"),
        b"split",
    ]);
    let seed = hash(&[
        b"heda masking: stream",
        &pair,
        &agreed,
        &length(b"gradient"),
        b"gradient",
        &7u64.to_le_bytes(),
    ]);
    let mut stream = ChaCha20Rng::from_seed(seed);
    let drawn: Vec<u64> = (0..5).map(|_| stream.next_u64() & MASK).collect();
    let relayed = messages.concat();
    for (own, setup) in setups.into_iter().enumerate() {
        let mut masks = setup.finish(&relayed).unwrap();
        masks.agree(b"split");
        let expected: Vec<u64> = match own == low {
            true => drawn.clone(),
            false => drawn
                .iter()
                .map(|mask| mask.wrapping_neg() & MASK)
                .collect(),
        };
        assert_eq!(*masks.stream("gradient", 7, 5).unwrap(), expected);
    }
}

#[test]
fn a_mask_is_handed_out_once_but_new_keys_may_repeat_a_round() {
    let all = identities(2);
    let mut first = masks(&all, 1);
    let drawn = first[0].stream("gradient", 5, 3).unwrap();
    for round in [5, 4, 0] {
        let error = first[0].stream("gradient", round, 3).unwrap_err();
        assert!(matches!(error, MaskingError::Reused { round: r, .. } if r == round));
    }
    assert!(first[0].stream("scores", 0, 3).is_ok());
    let resumed = masks(&all, 2)[0].stream("gradient", 5, 3).unwrap();
    assert_ne!(drawn, resumed);
}

#[test]
fn any_changed_byte_is_refused() {
    for place in [0, 31, 32, 63, 64, 65, 128] {
        let error = refused(|messages| messages[1][place] ^= 1);
        let expected = match place {
            0..32 => MaskingError::UnknownIdentity(1),
            _ => MaskingError::BadSignature(1),
        };
        assert_eq!(error, expected);
    }
}

#[test]
fn substituted_missing_and_repeated_providers_are_refused() {
    let strangers = identities(4);
    let (_, stranger) = announce(b"job", &strangers, 3, 1);
    let error = refused(|messages| messages[2] = stranger.clone());
    assert_eq!(error, MaskingError::UnknownIdentity(2));
    let error = refused(|messages| messages[2] = messages[1].clone());
    assert_eq!(error, MaskingError::DuplicateAnnouncement(2));
    let error = refused(|messages| messages[0] = messages[1].clone());
    assert_eq!(error, MaskingError::DuplicateAnnouncement(1));
    let error = refused(|messages| drop(messages.pop()));
    assert_eq!(
        error,
        MaskingError::WrongLength {
            got: 2 * ANNOUNCEMENT_BYTES,
            expected: 3 * ANNOUNCEMENT_BYTES
        }
    );
    let (_, old) = announce(b"job", &identities(3), 0, 9);
    let error = refused(|messages| messages[0] = old.clone());
    assert_eq!(error, MaskingError::NotOurAnnouncement(0));
}

#[test]
fn another_job_or_other_providers_are_refused() {
    let (_, other_job) = announce(b"other job", &identities(3), 1, 1);
    let error = refused(|messages| messages[1] = other_job.clone());
    assert_eq!(error, MaskingError::BadSignature(1));
    let (_, other_roster) = announce(b"job", &identities(4), 1, 1);
    let error = refused(|messages| messages[1] = other_roster.clone());
    assert_eq!(error, MaskingError::BadSignature(1));
}

/// Provider 1 of three signs any key and any origin.
fn signed(ephemeral: &[u8; 32], origin: u8) -> Vec<u8> {
    let all = identities(3);
    let own = all[1].verifying_key().to_bytes();
    let statement = roster(b"job", &all).statement(&own, ephemeral, origin);
    let signature = all[1].sign(&statement).to_bytes();
    [&own[..], ephemeral, &[origin], &signature].concat()
}

/// Masks from a seed hide nothing: who draws its own from the system does not add to them, and the
/// data user that relays the announcement reads in it whom to warn of.
#[test]
fn a_seeded_provider_is_refused_by_all_that_are_not() {
    let all = identities(3);
    let origins = |seeded: &[usize]| {
        let announced = (0..3).map(|own| {
            let origin = Origin::of_seeded(seeded.contains(&own));
            announce_from(origin, b"job", &all, own, 1)
        });
        let (setups, messages): (Vec<_>, Vec<_>) = announced.unzip();
        let told = messages.iter().zip(&all).map(|(message, key)| {
            let by = key.verifying_key();
            roster(b"job", &all).announced_origin(message, &by).unwrap()
        });
        let told: Vec<Origin> = told.collect();
        let relayed = messages.concat();
        let finished = setups.into_iter().map(|setup| setup.finish(&relayed).err());
        (told, finished.collect::<Vec<_>>())
    };
    let refused = Some(MaskingError::Seeded(1));
    let (told, errors) = origins(&[1]);
    assert_eq!(told, [Origin::System, Origin::Seed, Origin::System]);
    assert_eq!(errors, [refused.clone(), None, refused]);
    let (told, errors) = origins(&[0, 1, 2]);
    assert_eq!((told, errors), (vec![Origin::Seed; 3], vec![None; 3]));
}

#[test]
fn an_origin_cannot_be_changed_invented_or_taken_from_another() {
    let (_, seeded) = announce_from(Origin::Seed, b"job", &identities(3), 1, 1);
    let error = refused(|messages| {
        messages[1] = seeded.clone();
        messages[1][64] = Origin::System as u8;
    });
    assert_eq!(error, MaskingError::BadSignature(1));
    let key = RistrettoPoint::mul_base(&Scalar::from(5u8)).compress();
    let error = refused(|messages| messages[1] = signed(key.as_bytes(), 2));
    assert_eq!(error, MaskingError::UnknownOrigin(1));
    let all = identities(3);
    let read = |announcement: &[u8], by: usize| {
        let by = all[by].verifying_key();
        roster(b"job", &all).announced_origin(announcement, &by)
    };
    assert_eq!(read(&seeded, 1), Ok(Origin::Seed));
    assert_eq!(read(&seeded, 2), Err(MaskingError::OtherAuthor(0)));
    assert!(matches!(
        read(&seeded[1..], 1),
        Err(MaskingError::WrongLength { .. })
    ));
}

#[test]
fn bad_keys_are_refused_even_when_a_member_signs_them() {
    let signed = |ephemeral: [u8; 32]| signed(&ephemeral, 0);
    let error = refused(|messages| messages[1] = signed([0; 32]));
    assert_eq!(error, MaskingError::IdentityKey(1));
    // Encodings of points of small order on the curve below Ristretto: u = 1, −1 and others.
    let mut one = [0; 32];
    one[0] = 1;
    let mut minus_one = [0xff; 32];
    (minus_one[0], minus_one[31]) = (0xec, 0x7f);
    for small in [one, minus_one, [0xff; 32]] {
        let error = refused(|messages| messages[1] = signed(small));
        assert_eq!(error, MaskingError::BadKey(1));
    }
}

#[test]
fn rosters_are_checked() {
    let keys: Vec<_> = identities(2)
        .iter()
        .map(SigningKey::verifying_key)
        .collect();
    assert_eq!(Roster::new(b"job", &[]), Err(MaskingError::RosterSize(0)));
    let twice = Roster::new(b"job", &[keys[0], keys[1], keys[0]]);
    assert_eq!(twice, Err(MaskingError::DuplicateProvider(2)));
    let weak = VerifyingKey::from_bytes(&[0; 32]).unwrap();
    assert_eq!(
        Roster::new(b"job", &[keys[0], weak]),
        Err(MaskingError::WeakIdentity(1))
    );
    let outsider = identities(3).remove(2);
    let mut rng = Randomness::seeded(1).fork("announce", 0).unwrap();
    let only_others = Roster::new(b"job", &keys).unwrap();
    let error = MaskSetup::announce(only_others, &outsider, Origin::System, &mut rng).unwrap_err();
    assert_eq!(error, MaskingError::NotOnRoster);
}

#[test]
fn debug_output_shows_no_secret() {
    let all = identities(2);
    let (setup, _) = announce(b"job", &all, 0, 1);
    assert!(!format!("{setup:?}").contains("secret"));
    assert_eq!(
        format!("{:?}", masks(&all, 1)[0]),
        "Masks { others: 1, .. }"
    );
}
