use super::*;
use crate::summary::{BudgetLeft, Bytes, ClassResult, CpuSeconds, Phase, Promise, Seconds};
use heda_job::histogram::BinaryConfusion;
use heda_job::job::{ChosenPenalty, Revealed};
use heda_job::proposal::Engine;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::loss::LossKind;
use heda_learn::model::{Provenance, SpentOn, Unit};

/// What a hostile provider might call a feature.
const HOSTILE: &str = "<img src=x onerror=alert(1)>&\"'";

fn feature(name: &str, score: Option<f64>, protection: &'static str) -> RankedFeature {
    RankedFeature {
        name: name.into(),
        score,
        protection,
        epsilon: (protection == "published").then_some(2.5),
    }
}

fn summary() -> Summary {
    let bytes = Bytes {
        user_to_provider: 99_000,
        provider_to_user: 12_345_678,
    };
    let phase = |name, seconds| Phase {
        name,
        seconds,
        bytes,
        round_trips: 3,
    };
    Summary {
        dataset: format!("Data of {HOSTILE}"),
        engine: Engine::RESIDENT,
        seeded: true,
        providers: 1,
        rows: 80,
        held_out: 20,
        features: 3,
        iota: 1,
        cryptosystem: "none",
        epsilon_total: Some(2.5),
        iterations: 3,
        passes: 3.0,
        converged: true,
        accuracy: Some(0.95),
        accuracy_interval: Some([0.76, 0.99]),
        confusion: Some(BinaryConfusion {
            true_positives: 11,
            false_positives: 0,
            true_negatives: 8,
            false_negatives: 1,
        }),
        classes: vec!["well".into(), HOSTILE.into()],
        auc: Some([0.97, 0.98]),
        by_class: Vec::new(),
        overall: None,
        matrix: None,
        number: None,
        privacy: None,
        budget_left: Vec::new(),
        guarantee: None,
        noise_in_effects: Vec::new(),
        plain_accuracy: Some(0.96),
        dropped_accuracy: Some(0.9),
        majority_accuracy: Some(0.5),
        majority_in_clear: true,
        seconds: Seconds {
            total: 130.0,
            setup: 1.0,
            training: 120.0,
            evaluation: 9.0,
            user: 0.5,
            provider: Some(60.0),
        },
        cpu_seconds: CpuSeconds::default(),
        round_trips: 9,
        bytes,
        bytes_per_row_iteration: 12.5,
        us_per_row_iteration: 17.0,
        revealed: Revealed {
            gradient_numbers: 40,
            moment_numbers: 6,
            label_numbers: 0,
            count_numbers: 20,
            unknown_cells: 160,
            summed: false,
        },
        automatic_epsilon: false,
        ranked_by: HOSTILE.into(),
        split_reason: Some(HOSTILE.into()),
        features_by_rank: vec![
            feature("age", Some(0.7), "encrypted"),
            feature(HOSTILE, Some(0.3), "published"),
            feature("city", None, "dropped"),
        ],
        phases: vec![phase("encrypt", 1.0), phase("train", 120.0)],
        parties: vec![Party {
            name: "provider-1".into(),
            rows: 80,
            held_out: 20,
            seeded: true,
            epsilon: Some(2.5),
            seconds: Some(60.0),
        }],
        gradient_norms: vec![0.3, 0.02, 0.0009],
        stopped: vec!["Training converged.".into()],
        warnings: vec![
            "The coefficients were too large.".into(),
            "The sign of mitoses is open.".into(),
        ],
        penalty: "C = 1 on standardised features".into(),
        chosen_penalty: None,
        made: "2026-01-02 03:04:05 UTC".into(),
        model_path: None,
        report_path: None,
    }
}

fn model() -> Model {
    let provenance = Provenance {
        dataset: "x".into(),
        engine: "resident".into(),
        rows: 80,
        providers: 1,
        iterations: 3,
        privacy: None,
        features: vec![],
        versions: Default::default(),
        notes: Default::default(),
    };
    let betas = [vec![-3.0, 1.0, 2.0, -0.5, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5]];
    let schema = Bundle::Bcwd.schema(Coding::Natural);
    Model::new(LossKind::Logistic, schema, &betas, provenance).unwrap()
}

fn whole() -> String {
    page(&summary(), &model(), "heda demo --out 'a b<'")
}

#[test]
fn effects_are_those_of_the_way_that_a_model_looks() {
    let mut ends = vec![[0.0, 1.0]; 9];
    ends[1] = [0.25, 0.5];
    let reach = heda_learn::clip_range::ClipRange::new(ends).unwrap();
    let cut = model().with_reach(reach).unwrap();
    let text = page(&summary(), &cut, "heda demo");
    let said = "Numbers count up to three deviations";
    assert!(text.contains(said) && !whole().contains(said));
    // The second column's 2 over a quarter of the way.
    assert!(whole().contains("+2.0000") && !text.contains("+2.0000"));
    assert!(text.contains("+0.5000"));
}

/// Names of tags in the order in which they are opened; panics unless every tag is closed in the
/// right order and every ampersand begins a character reference.
fn balanced(page: &str) -> Vec<String> {
    let (mut open, mut seen) = (Vec::new(), Vec::new());
    let mut rest = page.strip_prefix("<!DOCTYPE html>").unwrap();
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at], open.last());
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        check_text(tag, None);
        let name: String = tag
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        assert!(!name.is_empty(), "{tag}");
        if !["meta", "wbr"].contains(&name.as_str()) {
            open.push(name.clone());
        }
        seen.push(name);
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
    seen
}

fn check_text(text: &str, inside: Option<&String>) {
    assert!(
        !text.contains('>') || inside.is_some_and(|tag| tag == "style"),
        "{text}"
    );
    for (at, _) in text.match_indices('&') {
        let end = text[at..].find(';').expect("a reference ends");
        let name = &text[at + 1..at + end];
        assert!(["amp", "lt", "gt", "quot"].contains(&name), "{name}");
    }
}

#[test]
fn the_page_is_well_formed_and_has_every_part() {
    let page = whole();
    let tags = balanced(&page);
    let count = |name: &str| tags.iter().filter(|tag| *tag == name).count();
    assert_eq!((count("html"), count("h1"), count("h2")), (1, 1, 7));
    assert_eq!((count("svg"), count("desc")), (5, 5));
    // One title for the page, one for every drawing.
    assert_eq!(count("title"), 6);
    for words in [
        "95.00 %",
        "96.00 %",
        "90.00 %",
        "50.00 %",
        "12.35 MB",
        "2.500 in sum",
        "2.0 min",
        "provider-<wbr>1",
        "seeded run",
        "heda demo --out 'a b&lt;'",
        "uniformity_<wbr>of_<wbr>cell_<wbr>size",
        "9.00e-4",
        "91.67 %",
        "64.61 % to 98.51 %",
        "C = 1 on standardised features",
        "2026-01-02 03:04:05 UTC",
        "Training converged.",
        "The coefficients were too large.",
        "The sign of mitoses is open.",
        "prefers-color-scheme: dark",
        "width=device-width",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn the_page_refers_to_nothing_outside_and_runs_nothing() {
    // What a provider wrote is there as text.
    let text = html! { (HOSTILE) }.into_string();
    // Names may be broken after their parts.
    let page = whole().replace("<wbr>", "").replace(&text, "");
    for word in [
        "://", "src=", "@import", "url(", "href", "<script", "<link", "<img", "onerror",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn a_run_without_scores_publication_or_evaluation_has_a_page_too() {
    let mut bare = summary();
    bare.features_by_rank
        .iter_mut()
        .for_each(|f| f.score = None);
    bare.gradient_norms.clear();
    (bare.accuracy, bare.auc, bare.epsilon_total) = (None, None, None);
    (bare.plain_accuracy, bare.dropped_accuracy, bare.seeded) = (None, None, false);
    bare.parties[0].seconds = None;
    let page = super::page(&bare, &model(), "heda");
    balanced(&page);
    assert!(page.contains("no ε was spent") && !page.contains("NaN"));
    assert!(page.contains("drawn afresh"));
    // The data user had no seed, but a provider says that it had one.
    assert!(page.contains("without protection of their rows: provider-1."));
    assert!(bare.text().contains("SEEDED PROVIDERS: provider-1 ran"));
    assert!(bare.text().contains("The coefficients were too large."));
    bare.warnings.clear();
    assert!(!bare.text().contains("too large"));
}

#[test]
fn a_private_run_begins_with_its_guarantee_and_has_nothing_that_is_not_its_own() {
    let mut private = summary();
    private.privacy = Some(Promise {
        epsilon: 1.0,
        delta: 1e-6,
        unit: Unit::Row,
        charged: Some(0.9998),
        spent_on: vec![SpentOn {
            what: "gradients".into(),
            answers: 18,
            share: 0.95,
        }],
        accuracy_in_clear: Some(0.97),
        counts_deviation: Some(3.5),
        right_deviation: Some(1.5),
        bounds_from_rows: false,
    });
    private.budget_left = vec![BudgetLeft {
        provider: "provider-1".into(),
        epsilon: 1.66,
    }];
    let sentence = "Everything that this job revealed is private with ε = 1 and δ = 1e-6.";
    private.guarantee = Some(sentence.into());
    private.seeded = false;
    private.epsilon_total = None;
    private
        .features_by_rank
        .iter_mut()
        .for_each(|f| (f.score, f.protection) = (None, "encrypted"));
    private.noise_in_effects = vec![0.6; 9];
    let page = super::page(&private, &model(), "heda");
    balanced(&page);
    let place = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words}"));
    assert!(place(sentence) < place("<h2>"), "above everything else");
    assert!(page.contains("The providers charged ε = 0.9998"), "{page}");
    assert!(page.contains("18 gradients") && page.contains("provider-1 has room for ε = 1.66"));
    let text = private.text();
    assert!(text.contains("charged: epsilon 0.9998"), "{text}");
    for absent in [
        "Share of the agreed scores",
        "no ε was spent",
        "Wilson",
        "97.00",
    ] {
        assert!(!page.contains(absent), "{absent}");
    }
    // 1, 2 and −3 are larger than twice the noise, or not: of nine effects one is.
    assert!(page.contains("noise at most") && page.contains("±0.6000"));
    assert!(page.contains("sign included: 8 of 9."), "{page}");
    assert!(page.contains("class=\"whisker\""));
    // An area by noisy counts is no bound, and what was counted in clear says so.
    assert!(
        page.contains("about 0.97 to 0.98") && page.contains("no bounds"),
        "{page}"
    );
    assert!(!page.contains("known within bounds"), "{page}");
    assert!(page.contains("most frequent class, counted in clear"));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!words.contains("AUC"), "{words}");
    let majority = "Majority class 50.00 %, counted in clear: nobody in a real job would see it";
    assert!(words.contains(majority), "{words}");
    let alone = Summary {
        majority_in_clear: false,
        ..private.clone()
    };
    assert!(!alone.text().contains("50.00 %, counted in clear"));
    assert!(
        private
            .who_learned()
            .contains("This holds even if the data user cheats")
    );
    let person = private.privacy.clone().map(|promise| Promise {
        unit: Unit::Person,
        ..promise
    });
    let persons = Summary {
        privacy: person,
        ..private.clone()
    };
    assert!(
        persons.text().contains("for a person,"),
        "{}",
        persons.text()
    );
    let words = persons.who_learned();
    assert!(
        words.contains("the rows of a person had their values"),
        "{words}"
    );
    assert!(!words.contains("a row had its"), "{words}");
    private.note_bounds_from_rows();
    let page = super::page(&private, &model(), "heda");
    assert!(!page.contains(sentence) && page.contains("nothing is guaranteed"));
    assert!(
        private
            .text()
            .contains("none: bounds were read from the rows")
    );
    assert!(private.who_learned().starts_with("Nothing is guaranteed"));
    assert!(
        !page.contains("holds even if the data user cheats"),
        "{page}"
    );
}

#[test]
fn several_classes_are_told_apart_and_nothing_is_called_the_accuracy() {
    let mut several = summary();
    (several.accuracy, several.auc, several.majority_accuracy) = (None, None, None);
    (several.confusion, several.accuracy_interval) = (None, None);
    let result = |class: &str, share| ClassResult {
        class: class.into(),
        accuracy: Some(share),
        accuracy_interval: None,
        confusion: None,
        auc: None,
        majority_accuracy: Some(0.5),
    };
    several.by_class = vec![result("low", 0.875), result(HOSTILE, 0.625)];
    assert!(!super::page(&several, &model(), "heda").contains("class=\"whisker\""));
    several.by_class[0].accuracy_interval = Some([0.8, 0.93]);
    let page = super::page(&several, &model(), "heda");
    balanced(&page);
    assert!(page.contains("low against the rest") && page.contains("87.5"));
    assert!(!page.contains(HOSTILE) && !page.contains("this model"));
    assert!(page.contains("class=\"whisker\""));
    assert!(page.contains("The line in the bar is the 95 % interval."));
    let text = several.text();
    let line = "  one-vs-rest   87.50 % low against the rest; the more frequent side 50.00 %";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("Accuracy  "), "{text}");
}

#[test]
fn words_are_quoted_for_a_shell() {
    assert_eq!(quoted("--iota=3"), "--iota=3");
    assert_eq!(quoted("my folder"), "'my folder'");
    assert_eq!(quoted("it's"), "'it'\\''s'");
    assert_eq!(quoted(""), "''");
}

#[test]
fn a_chosen_penalty_is_shown_with_what_the_others_came_to() {
    let tried = [(0.1, 0.7), (1.0, 0.9), (10.0, 0.85)].map(|(c, right)| TriedPenalty {
        c,
        gradients: 8,
        right: Some(right),
        rmse: None,
    });
    let chosen = Summary {
        chosen_penalty: Some(ChosenPenalty {
            tried: tried.to_vec(),
            chosen: 1,
            rows: 19,
        }),
        ..summary()
    };
    let page = super::page(&chosen, &model(), "heda");
    assert!(page.contains("Choice of the penalty"), "{page}");
    assert!(page.contains("chosen by 19 held-out rows"), "{page}");
    for share in ["70.00 %", "90.00 %", "85.00 %"] {
        assert!(page.contains(share), "{share}");
    }
    let text = chosen.text();
    assert!(text.contains("  C = 1         90.00 % chosen"), "{text}");
    assert!(text.contains("  C = 10        85.00 %\n"), "{text}");
}
