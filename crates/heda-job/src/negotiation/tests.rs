use super::*;
use crate::guard::{Permit, Step};
use crate::proposal::JobId;
use ed25519_dalek::SigningKey;
use heda_crypto::masking::{MaskSetup, Origin, Roster};
use heda_crypto::random::Randomness;
use std::fmt::Write;

const ROWS: [usize; 3] = [40, 120, 75];

fn schema(features: usize) -> Schema {
    let mut text = String::from(
        "format = 1\nname = \"test\"\n[label]\ncolumn = \"class\"\nclasses = [\"a\", \"b\"]\n\
         positive = \"b\"\n",
    );
    for feature in 0..features {
        write!(
            text,
            "[[column]]\nname = \"f{feature}\"\nkind = \"numeric\"\nbounds = [0, 1]\n"
        )
        .unwrap();
    }
    Schema::parse(&text, "test.toml").unwrap()
}

/// Rows of one provider. Its own features decide the class, others say nothing: the providers
/// differ strongly.
fn rows_of(provider: usize, features: usize, rows: usize) -> Dataset {
    let mut values = Vec::new();
    let mut labels = Vec::new();
    for row in 0..rows {
        let label = (row % 2) as u32;
        for feature in 0..features {
            let noise = ((row * 7919 + feature * 104_729) % 1009) as f64 / 1009.0;
            let strength = if feature % 3 == provider {
                0.9
            } else {
                0.1 * (feature % 5) as f64
            };
            values.push(strength * f64::from(label) * 0.5 + (1.0 - strength) * noise);
        }
        labels.push(label);
    }
    let classes = vec!["a".into(), "b".into()];
    Dataset::new(schema(features).features(), values, labels, classes).unwrap()
}

/// A sum, with the permit to let it leave.
pub(crate) fn open(width: usize) -> (OpenSum, Permit) {
    let job = JobId([0; 16]);
    let step = Step::Scores;
    (OpenSum::new(job, step, width), Permit::of(job, step))
}

/// A provider's message.
fn contribution(
    provider: &RankingProvider,
    data: &Dataset,
    masks: &mut JobMasks,
) -> Result<Vec<u8>, NegotiationError> {
    let (mut sum, permit) = open(provider.numbers());
    provider.add_shares(data, masks, &mut sum)?;
    let closed = sum.close(permit, masks, PURPOSE, None).unwrap();
    Ok(provider.message(&closed))
}

pub(crate) fn masks(providers: u64, seed: u64) -> Vec<JobMasks> {
    let source = Randomness::seeded(seed);
    let keys: Vec<SigningKey> = (0..providers)
        .map(|n| SigningKey::generate(&mut source.fork("identity", n).unwrap()))
        .collect();
    let public: Vec<_> = keys.iter().map(SigningKey::verifying_key).collect();
    let roster = Roster::new(b"job", &public).unwrap();
    let (setups, messages): (Vec<_>, Vec<_>) = keys
        .iter()
        .zip(0..)
        .map(|(key, n)| {
            let mut rng = source.fork("announce", n).unwrap();
            MaskSetup::announce(roster.clone(), key, Origin::System, &mut rng).unwrap()
        })
        .unzip();
    let relayed = messages.concat();
    setups
        .into_iter()
        .map(|setup| JobMasks::new(setup.finish(&relayed).unwrap(), &relayed))
        .collect()
}

fn members() -> Vec<Member> {
    let member = |(n, rows): (usize, &usize)| Member {
        name: format!("clinic {n}"),
        rows: *rows,
    };
    ROWS.iter().enumerate().map(member).collect()
}

/// Everything that was sent.
struct Transcript {
    contributions: Vec<Vec<u8>>,
    agreement: AgreedRanking,
}

fn run(method: ScoringMethod, features: usize, seed: u64) -> Transcript {
    let question = ScoresQuestion::new(&schema(features), method, 1);
    let mut masks = masks(3, seed);
    let provider = RankingProvider::new(question);
    let contribute = |(n, masks): (usize, &mut JobMasks)| {
        let rows = rows_of(n, features, ROWS[n]);
        contribution(&provider, &rows, masks).unwrap()
    };
    let contributions: Vec<Vec<u8>> = masks.iter_mut().enumerate().map(contribute).collect();
    let user = RankingUser::new(question, members()).unwrap();
    let agreement = user.combine(&contributions).unwrap();
    Transcript {
        contributions,
        agreement,
    }
}

fn own_shares(method: ScoringMethod, features: usize, provider: usize) -> Vec<u64> {
    let data = rows_of(provider, features, ROWS[provider]);
    let scores = Scores::compute(&data, method, 1).unwrap();
    weighted_shares(&scores, data.rows()).unwrap().to_vec()
}

#[test]
fn the_agreed_ranking_is_that_of_the_clear_sum() {
    for method in ScoringMethod::ALL {
        let shares: Vec<Vec<u64>> = (0..3).map(|p| own_shares(method, 9, p)).collect();
        let sum: Vec<f64> = (0..9)
            .map(|f| shares.iter().map(|s| s[f]).sum::<u64>() as f64)
            .collect();
        let agreement = run(method, 9, 1).agreement;
        assert_eq!(agreement.ranking, Ranking::by_score(&sum), "{method}");
        let own: Vec<Ranking> = (0..3)
            .map(|p| {
                Scores::compute(&rows_of(p, 9, ROWS[p]), method, 1)
                    .unwrap()
                    .ranking()
            })
            .collect();
        assert!(
            own[0] != own[1] && own[1] != own[2],
            "{method}: the providers must differ"
        );
        let total: f64 = agreement.shares.iter().sum();
        assert!((total - 1.0).abs() < 1e-4, "{total}");
    }
}

#[test]
fn nobody_sees_scores_of_a_single_provider() {
    let transcript = run(ScoringMethod::KruskalWallis, 9, 1);
    let seen = transcript.contributions.concat();
    for (provider, rows) in ROWS.into_iter().enumerate() {
        let data = rows_of(provider, 9, rows);
        let scores = Scores::compute(&data, ScoringMethod::KruskalWallis, 1).unwrap();
        let total: f64 = scores.values().iter().sum();
        let own = own_shares(ScoringMethod::KruskalWallis, 9, provider);
        for (share, score) in own.iter().zip(scores.values()) {
            let unweighted = share / rows as u64;
            let encodings = [
                pack(&[*share], MASK_BITS),
                pack(&[unweighted], MASK_BITS),
                score.to_le_bytes().to_vec(),
                (score / total).to_le_bytes().to_vec(),
            ];
            for bytes in encodings {
                assert!(!seen.windows(bytes.len()).any(|part| part == bytes));
            }
        }
    }
    // Other masks, the same agreement.
    assert_eq!(
        transcript.agreement,
        run(ScoringMethod::KruskalWallis, 9, 2).agreement
    );
    assert_ne!(
        transcript.contributions,
        run(ScoringMethod::KruskalWallis, 9, 2).contributions
    );
}

/// With whole shares s and coprime numbers of rows, S = n₁·s₁ + n₂·s₂ gives s₁ modulo n₂.
#[test]
fn the_sum_cannot_be_solved_for_the_shares_of_one_provider() {
    let (rows, features) = ([40u64, 121], 9);
    let scores = |provider: usize| {
        let data = rows_of(provider, features, rows[provider] as usize);
        Scores::compute(&data, ScoringMethod::KruskalWallis, 1).unwrap()
    };
    let own = |provider: usize| {
        weighted_shares(&scores(provider), rows[provider] as usize)
            .unwrap()
            .to_vec()
    };
    let (first, second) = (own(0), own(1));
    let inverse = (1..rows[1]).find(|i| rows[0] * i % rows[1] == 1).unwrap();
    let solved = (0..features).filter(|&f| {
        let sum = first[f] + second[f];
        let share = scores(0).values()[f] / scores(0).values().iter().sum::<f64>();
        let whole = (share * SHARE_ONE as f64).round() as u64;
        sum % rows[1] * inverse % rows[1] == whole % rows[1]
    });
    // By chance one in 121.
    assert!(solved.count() <= 1);
    for (shares, rows) in [(&first, rows[0]), (&second, rows[1])] {
        assert!(shares.iter().any(|share| share % rows != 0));
    }
}

#[test]
fn contributions_are_uniform_alone_and_in_pairs() {
    let features = 3000;
    let contributions = run(ScoringMethod::Pearson, features, 3).contributions;
    let numbers: Vec<Vec<u64>> = contributions
        .iter()
        .map(|c| unpack(&c[FINGERPRINT_BYTES..], features, MASK_BITS).unwrap())
        .collect();
    let pair = |a: usize, b: usize| -> Vec<u64> {
        let sum = |(x, y): (&u64, &u64)| x.wrapping_add(*y) & MODULUS_MASK;
        numbers[a].iter().zip(&numbers[b]).map(sum).collect()
    };
    let views = [numbers.clone(), vec![pair(0, 1), pair(0, 2), pair(1, 2)]].concat();
    for view in views {
        let mut counts = [0f64; 256];
        for number in &view {
            for byte in &pack(&[*number], MASK_BITS) {
                counts[usize::from(*byte)] += 1.0;
            }
        }
        let expected = packed_bytes(features, MASK_BITS) as f64 / 256.0;
        let chi_square: f64 = counts
            .iter()
            .map(|c| (c - expected).powi(2) / expected)
            .sum();
        // 255 degrees of freedom: mean 255, standard deviation 22.6.
        assert!((150.0..380.0).contains(&chi_square), "{chi_square}");
    }
}

#[test]
fn a_wrong_schema_is_named_with_its_provider() {
    let stranger = RankingProvider::new(ScoresQuestion::new(&schema(5), ScoringMethod::Chi2, 1));
    let mut masks = masks(3, 1);
    let message = contribution(&stranger, &rows_of(0, 5, 40), &mut masks[0]).unwrap();
    let user = RankingUser::new(
        ScoresQuestion::new(&schema(4), ScoringMethod::Chi2, 1),
        members(),
    )
    .unwrap();
    let error = user.combine(&vec![message; 3]).unwrap_err().to_string();
    assert!(error.contains("clinic 0"), "{error}");
    for side in [schema(4), schema(5)] {
        assert!(error.contains(&side.fingerprint().to_string()), "{error}");
    }
}

#[test]
fn one_provider_does_not_show_its_scores_but_may_choose() {
    let question = ScoresQuestion::new(&schema(6), ScoringMethod::KruskalWallis, 1);
    let provider = RankingProvider::new(question);
    let data = rows_of(0, 6, 50);
    let refused = contribution(&provider, &data, &mut masks(1, 1)[0]);
    assert!(matches!(refused, Err(NegotiationError::Alone)));
    let user = || RankingUser::new(question, members()).unwrap();
    let choice = provider.choose(&data).unwrap();
    let ranking = user().chosen_by(0, &choice).unwrap();
    let own = Scores::compute(&data, ScoringMethod::KruskalWallis, 1).unwrap();
    assert_eq!(ranking, own.ranking());
    assert_eq!(choice.len(), FINGERPRINT_BYTES + 2 * 6);
    assert!(matches!(
        user().chosen_by(3, &choice),
        Err(NegotiationError::Contributions {
            expected: 3,
            found: 4
        })
    ));
}

#[test]
fn refuses_messages_that_are_short_long_or_nonsense() {
    let question = ScoresQuestion::new(&schema(6), ScoringMethod::KruskalWallis, 1);
    let good = run(ScoringMethod::KruskalWallis, 6, 1);
    let combine = |messages: &[Vec<u8>]| {
        RankingUser::new(question, members())
            .unwrap()
            .combine(messages)
    };
    assert!(matches!(
        combine(&good.contributions[..2]),
        Err(NegotiationError::Contributions {
            expected: 3,
            found: 2
        })
    ));
    for length in [
        0,
        FINGERPRINT_BYTES - 1,
        FINGERPRINT_BYTES,
        good.contributions[1].len() - 1,
    ] {
        let mut short = good.contributions.clone();
        short[1].truncate(length);
        assert!(matches!(
            combine(&short),
            Err(NegotiationError::Length { .. })
        ));
    }
    let mut other_masks = good.contributions.clone();
    other_masks[2] = run(ScoringMethod::KruskalWallis, 6, 2).contributions[2].clone();
    assert!(matches!(combine(&other_masks), Err(NegotiationError::Sum)));

    let choose = |order: &[u8]| {
        let message = [schema(6).fingerprint().as_bytes(), order].concat();
        RankingUser::new(question, members())
            .unwrap()
            .chosen_by(0, &message)
    };
    for bad in [[0u8; 12], [0xff; 12]] {
        assert!(matches!(choose(&bad), Err(NegotiationError::Ranking(_))));
    }
    let short = choose(&[0; 11]);
    assert!(matches!(short, Err(NegotiationError::Length { .. })));
}

#[test]
fn refuses_rows_that_cannot_take_part() {
    let question = ScoresQuestion::new(&schema(6), ScoringMethod::KruskalWallis, 1);
    let provider = RankingProvider::new(question);
    let mut masks = masks(2, 1);
    let narrow = contribution(&provider, &rows_of(0, 5, 40), &mut masks[0]);
    assert!(matches!(
        narrow,
        Err(NegotiationError::Features {
            expected: 6,
            found: 5
        })
    ));
    let one_class = rows_of(0, 6, 40).select_rows(&[0, 2, 4]);
    let refused = provider.choose(&one_class);
    assert!(matches!(
        refused,
        Err(NegotiationError::Score(RankingError::OneClass { .. }))
    ));
    let many = vec![
        Member {
            name: "a".into(),
            rows: MAX_ROWS,
        },
        Member {
            name: "b".into(),
            rows: 1,
        },
    ];
    assert!(matches!(
        RankingUser::new(question, many),
        Err(NegotiationError::Rows(_))
    ));
}
