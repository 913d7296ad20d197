use super::*;
use crate::agreement::JobMasks;
use crate::negotiation::tests::{masks, open};
use heda_crypto::bits::pack;

const NOTHING: OfLabels = OfLabels::Nothing;

fn features() -> Vec<Feature> {
    let feature = |name: &str, columns, levels| Feature {
        name: String::from(name),
        columns,
        levels,
    };
    vec![
        feature("narrow", 0..1, None),
        feature("kind", 1..4, Some(3)),
        feature("grade", 4..5, Some(5)),
    ]
}

fn rows(provider: usize, rows: usize) -> Dataset {
    let mut values = Vec::new();
    for row in 0..rows {
        let draw = ((row * 7919 + provider * 104_729) % 1009) as f64 / 1009.0;
        let mut one = vec![0.3 + 0.001 * draw, 0.0, 0.0, 0.0, (row % 5) as f64 / 4.0];
        one[1 + (row + provider) % 3] = 1.0;
        values.extend(one);
    }
    let labels = (0..rows as u32).map(|row| row % 2).collect();
    Dataset::new(features(), values, labels, vec!["a".into(), "b".into()]).unwrap()
}

/// A provider's message.
fn contribution(
    part: &Dataset,
    labels: OfLabels,
    bits: u32,
    masks: &mut JobMasks,
) -> Result<Vec<u8>, MomentsError> {
    let (mut sum, permit) = open(numbers(&features(), labels));
    add_rows(part, &features(), labels, bits, &mut sum)?;
    let closed = sum.close(permit, masks, PURPOSE, None).unwrap();
    Ok(pack(&closed, MASK_BITS))
}

fn combined(parts: &[Dataset]) -> Result<Vec<Centre>, MomentsError> {
    combined_with(parts, OfLabels::Nothing).map(|moments| moments.centres)
}

fn combined_with(parts: &[Dataset], labels: OfLabels) -> Result<Moments, MomentsError> {
    let all = parts.iter().map(Dataset::rows).sum();
    let bits = fraction_bits(all).unwrap();
    let masks = masks(parts.len() as u64, 1);
    let sums = parts.iter().zip(masks).map(|(part, mut masks)| {
        let sums = contribution(part, labels, bits, &mut masks).unwrap();
        assert_eq!(sums.len(), sum_bytes(&features(), labels));
        sums
    });
    combine(&sums.collect::<Vec<_>>(), &features(), labels, bits, all)
}

#[test]
fn the_sums_of_all_providers_give_the_centres_of_all_rows() {
    for providers in [1, 3] {
        let parts: Vec<_> = (0..providers).map(|p| rows(p, 200 + 30 * p)).collect();
        let values = parts.iter().flat_map(|p| p.values().to_vec()).collect();
        let labels = parts.iter().flat_map(|p| p.labels().to_vec()).collect();
        let whole = Dataset::new(features(), values, labels, vec!["a".into(), "b".into()]);
        let exact = heda_learn::scaling::Scaling::of(&whole.unwrap());
        let found = combined(&parts).unwrap();
        assert_eq!(found.len(), exact.width());
        for (found, exact) in found.iter().zip(exact.centres()) {
            assert!((found.mean - exact.mean).abs() < 1e-9);
            // A deviation of 3·10⁻⁴ of the range, from squares of 0.09.
            assert!((found.deviation / exact.deviation - 1.0).abs() < 1e-3);
        }
    }
}

/// What other columns leave unexplained stands with its own column, behind a category too.
#[test]
fn every_number_has_the_share_that_others_leave_of_it() {
    let part = rows(0, 200);
    let found = combined_with(std::slice::from_ref(&part), NOTHING).unwrap();
    let deviations = unexplained(&part, &features());
    let [narrow, grade] = deviations[..] else {
        panic!("{deviations:?}");
    };
    let share = |left: f64, column: usize| left / found.centres[column].deviation;
    let expected = [share(narrow, 0), 1.0, 1.0, 1.0, share(grade, 4)];
    for (found, expected) in found.left.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
    assert_eq!(found.left.len(), 5);
    assert!(
        share(grade, 4) > 0.9 && share(narrow, 0) > 0.9,
        "nothing else explains them"
    );
}

#[test]
fn labels_are_counted_or_added_up_with_the_columns() {
    let parts = [rows(0, 201), rows(1, 300)];
    let counted = combined_with(&parts, OfLabels::Counts(2)).unwrap();
    assert_eq!(counted.counts, [251, 250]);
    let numeric = parts.clone().map(|part| {
        let labels = part.labels().iter().map(|l| 400_000 + 1000 * l);
        let (features, values) = (part.features().to_vec(), part.values().to_vec());
        Dataset::new(features, values, labels.collect(), Vec::new()).unwrap()
    });
    let added = combined_with(&numeric, OfLabels::Number).unwrap();
    assert_eq!(added.centres, counted.centres);
    let number = added.number.unwrap();
    let steps = f64::from(target::STEPS);
    assert!((number.mean * steps - 400_499.0).abs() < 0.1, "{number:?}");
    assert!((number.deviation * steps - 500.0).abs() < 1.0, "{number:?}");
}

#[test]
fn windows_are_those_of_numbers() {
    let parts = [rows(0, 300), rows(1, 300)];
    let centres = combined(&parts).unwrap();
    let windows = windows(&features(), &centres);
    assert_eq!(windows.len(), 2, "a number and an ordinal, not the levels");
    assert!(windows[0].low > 0.29 && windows[0].high < 0.31);
    assert_eq!(windows[1], Window::WHOLE);
    let all = by_column(&features(), &windows, 5).unwrap();
    assert_eq!(all[1..4], [Window::WHOLE; 3]);
    assert_eq!((all[0], all[4]), (windows[0], windows[1]));
    assert!(by_column(&features(), &windows[..1], 5).is_err());
    let reversed = [
        windows[0],
        Window {
            low: 0.5,
            high: 0.4,
        },
    ];
    assert!(by_column(&features(), &reversed, 5).is_err());
    let beyond = [
        windows[0],
        Window {
            low: 0.5,
            high: f64::NAN,
        },
    ];
    assert!(by_column(&features(), &beyond, 5).is_err());
}

#[test]
fn a_lost_or_foreign_contribution_is_noticed_and_sums_are_masked() {
    let parts = [rows(0, 100), rows(1, 100)];
    let bits = fraction_bits(200).unwrap();
    let mut masks = masks(2, 3);
    let first = contribution(&parts[0], NOTHING, bits, &mut masks[0]).unwrap();
    let alone = combine(
        std::slice::from_ref(&first),
        &features(),
        NOTHING,
        bits,
        100,
    );
    assert!(matches!(alone, Err(MomentsError::Sum)));
    let short = combine(&[vec![0; 5]], &features(), NOTHING, bits, 100);
    assert!(matches!(short, Err(MomentsError::Sum)));
}

#[test]
fn sums_never_overflow() {
    assert_eq!(fraction_bits(1).unwrap(), MOST_FRACTION);
    for rows in [1usize, 2, 3, 1023, 1024, 1 << 20, 1 << 30] {
        let bits = fraction_bits(rows).unwrap();
        assert!((rows as u128) << bits < 1 << MASK_BITS, "{rows}");
    }
    // One bit more than the rows have, so that no sum comes near its end.
    let bits = [1, 127, 128, 1023, 1024, (1 << 31) - 1].map(|rows| fraction_bits(rows).unwrap());
    assert_eq!(bits, [40, 40, 39, 37, 36, 16]);
    for rows in [1 << 31, 1 << 33] {
        assert!(matches!(fraction_bits(rows), Err(MomentsError::Rows(_))));
    }
    // With forty fraction bits, 2^8 rows fill 48 bits.
    for (count, fits) in [(255, true), (256, false)] {
        let rows = rows(0, count as usize);
        let sums = contribution(&rows, NOTHING, MOST_FRACTION, &mut masks(1, count)[0]);
        assert_eq!(sums.is_ok(), fits, "{count}");
        assert!(fits || matches!(sums, Err(MomentsError::Rows(256))));
    }
    let mut masks = masks(1, 4);
    for bits in [0, 15, 41, u32::MAX] {
        let refused = contribution(&rows(0, 20), NOTHING, bits, &mut masks[0]);
        assert!(matches!(refused, Err(MomentsError::Fraction(_))));
    }
}

#[test]
fn a_schema_that_states_all_numbers_takes_the_place_of_sums() {
    let text = "format = 1\nname = \"t\"\n[label]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n\
                positive = \"b\"\n[[column]]\nname = \"narrow\"\nkind = \"numeric\"\nbounds = [0, 200]\n\
                typical = { mean = 60, deviation = 10 }\n[[column]]\nname = \"kind\"\n\
                kind = \"categorical\"\nlevels = [\"p\", \"q\", \"r\"]\n[[column]]\nname = \"grade\"\n\
                kind = \"ordinal\"\nlevels = [\"1\", \"2\", \"3\", \"4\", \"5\"]\n";
    let schema = |text: &str| Schema::parse(text, "t.toml").unwrap();
    assert_eq!(
        by_schema(&schema(text), &features(), NOTHING),
        None,
        "grade is not stated"
    );
    let stated = format!("{text}typical = {{ mean = 2, deviation = 1 }}\n");
    let stated = by_schema(&schema(&stated), &features(), NOTHING).unwrap();
    let centres = stated.centres;
    assert!((centres[0].mean - 0.3).abs() < 1e-12);
    assert!((centres[0].deviation - 0.05).abs() < 1e-12);
    assert!((centres[1].mean - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!((centres[4].mean, centres[4].deviation), (0.5, 0.25));
}

/// Bounds that do not begin at nought: a column and a numeric label lie where they are between their bounds.
#[test]
fn what_a_schema_states_is_told_as_a_part_of_the_range() {
    let text = "format = 1\nname = \"t\"\n[label]\ncolumn = \"y\"\nkind = \"numeric\"\n\
                bounds = [100, 300]\ntypical = { mean = 150, deviation = 20 }\n[[column]]\n\
                name = \"narrow\"\nkind = \"numeric\"\nbounds = [50, 250]\n\
                typical = { mean = 60, deviation = 10 }\n";
    let schema = Schema::parse(text, "t.toml").unwrap();
    let stated = by_schema(&schema, &features()[..1], OfLabels::Number).unwrap();
    let close = |found: Centre, mean: f64, deviation: f64| {
        (found.mean - mean).abs() < 1e-12 && (found.deviation - deviation).abs() < 1e-12
    };
    assert!(close(stated.centres[0], 0.05, 0.05), "{stated:?}");
    assert!(close(stated.number.unwrap(), 0.25, 0.1), "{stated:?}");
}

#[test]
fn features_that_do_not_vary_are_named() {
    let still = Centre::of_moments(0.5, 0.25);
    let moving = Centre::of_moments(0.5, 0.3);
    let (absent, present) = (Centre::of_share(0.0), Centre::of_share(0.4));
    let centres = [moving, absent, present, present, still];
    assert_eq!(constant(&features(), &centres), ["grade"]);
    let centres = [still, absent, absent, absent, moving];
    assert_eq!(constant(&features(), &centres), ["narrow", "kind"]);
}
