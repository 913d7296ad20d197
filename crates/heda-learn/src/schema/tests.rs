use super::*;

const SMALL: &str = r#"
format = 1
name = "small"
missing_markers = ["", "?"]
ignore = ["id"]

[label]
column = "class"
classes = ["good", "fair", "bad"]
positive = ["good", "fair"]

[[column]]
name = "age"
kind = "numeric"
bounds = [20, 60]
outside = "clip"
missing = { value = 37 }

[[column]]
name = "size"
kind = "ordinal"
levels = ["small", "medium", "large"]
missing = { value = "medium" }

[[column]]
name = "colour"
kind = "categorical"
levels = ["?", "red", "blue"]
missing = { level = "?" }
"#;

fn small() -> Schema {
    Schema::parse(SMALL, "small.toml").unwrap()
}

/// The fault after replacing a part of the sample, and the line that it is reported at.
fn fault(from: &str, to: &str) -> (SchemaFault, usize) {
    assert!(SMALL.contains(from), "{from}");
    let error = Schema::parse(&SMALL.replacen(from, to, 1), "small.toml").unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("small.toml: line "), "{text}");
    (error.fault().clone(), error.line_and_column().unwrap().0)
}

#[test]
fn describes_the_encoded_row() {
    let schema = small();
    assert_eq!(schema.width(), 5);
    let features = schema.features();
    assert_eq!(features[2].columns, 2..5);
    assert_eq!(features[2].levels, Some(3));
    assert_eq!(features[0].levels, None);
    let encoded = schema.encoded_columns();
    assert_eq!((encoded[0].offset, encoded[0].scale), (20.0, 40.0));
    assert_eq!((encoded[1].offset, encoded[1].scale), (0.0, 2.0));
    assert_eq!(encoded[3].name, "colour=red");
    assert_eq!(encoded[3].level.as_deref(), Some("red"));
    assert_eq!(encoded[4].feature, 2);
}

#[test]
fn groups_the_positive_classes() {
    assert_eq!(small().label().classes(), ["bad", "good or fair"]);
    let all = SMALL.replace("positive = [\"good\", \"fair\"]\n", "");
    let all = Schema::parse(&all, "all.toml").unwrap();
    assert_eq!(all.label().classes(), ["good", "fair", "bad"]);
}

#[test]
fn survives_toml_and_json() {
    let schema = small();
    assert_eq!(Schema::parse(&schema.to_toml(), "again").unwrap(), schema);
    let json = serde_json::to_string(&schema).unwrap();
    assert_eq!(serde_json::from_str::<Schema>(&json).unwrap(), schema);
    let reversed = json.replace("[20.0,60.0]", "[60.0,20.0]");
    assert!(serde_json::from_str::<Schema>(&reversed).is_err());
}

#[test]
fn fingerprint_sees_meaning_and_not_layout() {
    let first = small().fingerprint();
    let spelled_out = SMALL.replace(
        "levels = [\"small\"",
        "coding = \"ordinal\" # as usual\nlevels = [\n\"small\"",
    );
    let again = Schema::parse(&spelled_out, "x").unwrap().fingerprint();
    assert_eq!(first, again);
    let other = SMALL.replace("[20, 60]", "[20, 61]");
    assert_ne!(first, Schema::parse(&other, "x").unwrap().fingerprint());
    assert_eq!(first.to_string().len(), 64);
}

#[test]
fn fingerprint_is_pinned() {
    // Parties with different builds compare this value: changing it is a change of the format.
    let expected = "f03beb3d03184c81f112180bf170b51f7a61d7408a452d9983ff929e2bb587d8";
    assert_eq!(small().fingerprint().to_string(), expected);
}

#[test]
fn bounds_reversed() {
    let (found, line) = fault("[20, 60]", "[60, 20]");
    assert!(matches!(
        found,
        SchemaFault::BoundsReversed { lower: 60.0, .. }
    ));
    assert_eq!(line, 15);
}

#[test]
fn bounds_empty_or_infinite() {
    let (found, _) = fault("[20, 60]", "[20, 60, 80]");
    assert!(matches!(found, SchemaFault::BoundsCount { .. }));
    let (found, _) = fault("[20, 60]", "[20, 20]");
    assert!(matches!(found, SchemaFault::BoundsReversed { .. }));
    for bounds in ["[nan, 60]", "[20, inf]", "[-1.7e308, 1.7e308]"] {
        let (found, line) = fault("[20, 60]", bounds);
        assert!(
            matches!(found, SchemaFault::BoundsNotFinite { .. }),
            "{bounds}"
        );
        assert_eq!(line, 15);
    }
}

#[test]
fn typical_values_are_possible_ones() {
    let stated = SMALL
        .replace(
            "[20, 60]",
            "[20, 60]\ntypical = { mean = 38.6, deviation = 13 }",
        )
        .replace(
            "\"large\"]",
            "\"large\"]\ntypical = { mean = 1, deviation = 0.5 }",
        );
    let schema = Schema::parse(&stated, "x").unwrap();
    let (mean, deviation) = (38.6, 13.0);
    assert_eq!(
        schema.columns()[0].typical(),
        Some(Typical { mean, deviation })
    );
    assert_eq!(schema.columns()[2].typical(), None);
    assert_ne!(schema.fingerprint(), small().fingerprint());
    assert_eq!(Schema::parse(&schema.to_toml(), "again").unwrap(), schema);
    for (mean, deviation) in [(61.0, 1.0), (40.0, 0.0), (40.0, 20.1), (20.0, 1.0)] {
        let to = format!("[20, 60]\ntypical = {{ mean = {mean}, deviation = {deviation} }}");
        let (found, line) = fault("[20, 60]", &to);
        assert!(matches!(found, SchemaFault::TypicalImpossible { .. }));
        assert_eq!(line, 16);
    }
    let to = "\"blue\"]\ntypical = { mean = 1, deviation = 0.5 }";
    let (found, _) = fault("\"blue\"]", to);
    assert!(matches!(
        found,
        SchemaFault::FieldUnused {
            field: "typical",
            ..
        }
    ));
    let (found, _) = fault(
        "[20, 60]",
        "[20, 60]\ntypical = { mean = nan, deviation = 1 }",
    );
    assert!(matches!(found, SchemaFault::TypicalImpossible { .. }));
}

#[test]
fn label_column_used_as_feature() {
    let (found, line) = fault("name = \"size\"", "name = \"class\"");
    assert_eq!(found, SchemaFault::LabelAsFeature("class".into()));
    assert_eq!(line, 20);
}

#[test]
fn names_are_used_once() {
    let (found, _) = fault("name = \"size\"", "name = \"age\"");
    assert_eq!(found, SchemaFault::DuplicateColumn("age".into()));
    let (found, line) = fault("[\"id\"]", "[\"size\"]");
    assert_eq!(found, SchemaFault::IgnoredButUsed("size".into()));
    assert_eq!(line, 5);
    let (found, _) = fault("\"red\"", "\"blue\"");
    assert!(matches!(found, SchemaFault::DuplicateLevel { .. }));
    let (found, _) = fault("\"bad\"]", "\"fair\"]");
    assert_eq!(found, SchemaFault::DuplicateClass("fair".into()));
}

#[test]
fn unknown_and_missing_fields_have_a_line() {
    for (from, to) in [
        ("outside =", "outsides ="),
        ("kind = \"ordinal\"", "kind = \"ordered\""),
        ("bounds = [20, 60]", "bounds = 20"),
        ("name = \"age\"\n", ""),
        ("{ value = 37 }", "{ median = 37 }"),
        ("[label]", "[label"),
    ] {
        let (found, line) = fault(from, to);
        assert!(matches!(found, SchemaFault::Syntax(_)), "{from}: {found:?}");
        assert!(line > 1, "{from}");
    }
}

#[test]
fn fields_must_fit_the_kind() {
    let needed = fault("bounds = [20, 60]\n", "").0;
    assert!(matches!(
        needed,
        SchemaFault::FieldNeeded {
            field: "bounds",
            ..
        }
    ));
    let needed = fault("levels = [\"small\", \"medium\", \"large\"]", "").0;
    assert!(matches!(
        needed,
        SchemaFault::FieldNeeded {
            field: "levels",
            ..
        }
    ));
    let unused = fault("bounds =", "coding = \"onehot\"\nbounds =").0;
    assert!(matches!(
        unused,
        SchemaFault::FieldUnused {
            field: "coding",
            ..
        }
    ));
    let unused = fault("levels =", "outside = \"clip\"\nlevels =").0;
    assert!(matches!(
        unused,
        SchemaFault::FieldUnused {
            field: "outside",
            ..
        }
    ));
}

#[test]
fn rules_for_missing_values_must_fit() {
    let outside = fault("{ value = 37 }", "{ value = 61 }").0;
    assert!(matches!(outside, SchemaFault::MissingValueOutside { .. }));
    let misfit = fault("{ value = 37 }", "{ level = \"x\" }").0;
    assert!(matches!(misfit, SchemaFault::MissingMisfit { .. }));
    let unknown = fault("{ value = \"medium\" }", "{ value = \"huge\" }").0;
    assert!(matches!(unknown, SchemaFault::MissingLevelUnknown { .. }));
    let marker = fault("{ level = \"?\" }", "{ value = \"red\" }").0;
    assert!(matches!(marker, SchemaFault::LevelIsMarker { .. }));
}

#[test]
fn labels_must_divide_the_rows() {
    let part = |to| fault("[\"good\", \"fair\"]\n", to).0;
    assert_eq!(part("[]\n"), SchemaFault::PositiveNotAPart);
    assert_eq!(
        part("\"great\"\n"),
        SchemaFault::PositiveUnknown("great".into())
    );
    let all = part("[\"good\", \"fair\", \"bad\"]\n");
    assert_eq!(all, SchemaFault::PositiveNotAPart);
    let classes = "[\"good\", \"fair\", \"bad\"]\npositive = [\"good\", \"fair\"]";
    assert_eq!(
        fault(classes, "[\"good\"]").0,
        SchemaFault::TooFewClasses(1)
    );
    assert_eq!(
        fault(classes, "[\"good\", \"bad\"]").0,
        SchemaFault::NoPositive
    );
}

#[test]
fn sizes_are_bounded() {
    let levels: Vec<String> = (0..=MAX_LEVELS).map(|i| format!("\"{i}\"")).collect();
    let many = fault(
        "[\"small\", \"medium\", \"large\"]",
        &format!("[{}]", levels.join(",")),
    );
    assert!(matches!(many.0, SchemaFault::TooManyLevels { .. }));
    let long = "x".repeat(MAX_NAME_BYTES + 1);
    let (found, _) = fault("name = \"size\"", &format!("name = \"{long}\""));
    assert!(matches!(found, SchemaFault::Name { .. }));
    let column = |i| format!("[[column]]\nname='{i}'\nkind='numeric'\nbounds=[0,1]\n");
    let columns: String = (0..MAX_COLUMNS).map(column).collect();
    let error = Schema::parse(&format!("{SMALL}{columns}"), "x").unwrap_err();
    assert!(matches!(error.fault(), SchemaFault::TooManyColumns(_)));
    let huge = " ".repeat(MAX_SCHEMA_BYTES + 1);
    let error = Schema::parse(&huge, "x").unwrap_err();
    assert_eq!(error.fault(), &SchemaFault::TooLarge);
}

#[test]
fn files_are_read_with_care() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("schema.toml");
    let absent = Schema::read(&path).unwrap_err();
    assert!(matches!(absent.fault(), SchemaFault::File(_)));
    std::fs::write(&path, b"format = 1\nname = \"\xff\"\n").unwrap();
    let garbled = Schema::read(&path).unwrap_err();
    assert_eq!(garbled.fault(), &SchemaFault::Utf8 { line: 2 });
    std::fs::write(&path, SMALL).unwrap();
    assert_eq!(Schema::read(&path).unwrap(), small());
}

#[test]
fn dates_are_bounded_by_dates() {
    let text = |bounds: &str, missing: &str| {
        format!(
            "format = 1\nname = \"x\"\n[label]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n\
             positive = \"b\"\n[[column]]\nname = \"seen\"\nkind = \"date\"\nbounds = {bounds}\n\
             missing = {missing}\n"
        )
    };
    let good = text(
        "[\"2000-01-01\", \"2030-12-31\"]",
        "{ value = \"2010-06-01\" }",
    );
    let schema = Schema::parse(&good, "x").unwrap();
    assert_eq!(Schema::parse(&schema.to_toml(), "x").unwrap(), schema);
    let Kind::Numeric { bounds, dates, .. } = schema.columns()[0].kind() else {
        panic!("dates are numbers");
    };
    assert!(*dates && bounds.lower() == 10_957.0);
    for (bounds, missing, word) in [
        ("[2000, 2030]", "\"drop\"", "is no date"),
        ("[\"2000-01-01\", \"soon\"]", "\"drop\"", "is no date"),
        ("[2000-01-01, 2030-01-01]", "\"drop\"", "a date in quotes"),
        (
            "[\"2000-01-01\", \"2030-12-31\"]",
            "{ value = \"never\" }",
            "is no date",
        ),
        (
            "[\"2000-01-01\", \"2030-12-31\"]",
            "{ value = \"1990-01-01\" }",
            "outside",
        ),
        ("[\"2030-01-01\", \"2000-12-31\"]", "\"drop\"", "reversed"),
    ] {
        let error = Schema::parse(&text(bounds, missing), "x")
            .unwrap_err()
            .to_string();
        assert!(error.contains(word), "{bounds} {missing}: {error}");
    }
}

#[test]
fn a_label_may_be_a_number_within_bounds() {
    let classes = "classes = [\"good\", \"fair\", \"bad\"]\npositive = [\"good\", \"fair\"]\n";
    let numeric = |lines: &str| SMALL.replacen(classes, lines, 1);
    let good = "kind = \"numeric\"\nbounds = [-10, 30]\noutside = \"clip\"\n\
                typical = { mean = 5, deviation = 8 }\n";
    let schema = Schema::parse(&numeric(good), "small.toml").unwrap();
    let number = schema.label().number().unwrap();
    assert_eq!(
        (number.bounds.lower(), number.bounds.range()),
        (-10.0, 40.0)
    );
    assert_eq!(number.outside, Outside::Clip);
    assert_eq!(number.to_units(&[0.5, 1.0]), [10.0, 40.0]);
    assert_eq!(Schema::parse(&schema.to_toml(), "again").unwrap(), schema);
    assert_ne!(schema.fingerprint(), small().fingerprint());
    let word = |lines: &str| {
        let error = Schema::parse(&numeric(lines), "small.toml").unwrap_err();
        assert!(error.line_and_column().is_some(), "{error}");
        error.to_string()
    };
    for (lines, words) in [
        ("kind = \"numeric\"\n", "needs `bounds`"),
        ("kind = \"numeric\"\nbounds = [3, 3]\n", "reversed or empty"),
        ("kind = \"numeric\"\nbounds = [3]\n", "two numbers"),
        (
            "kind = \"numeric\"\nbounds = [0, 1]\nclasses = [\"a\", \"b\"]\n",
            "`classes` means nothing",
        ),
        (
            "kind = \"numeric\"\nbounds = [0, 1]\npositive = \"a\"\n",
            "`positive` means nothing",
        ),
        (
            "kind = \"numeric\"\nbounds = [0, 1]\ntypical = { mean = 5, deviation = 1 }\n",
            "no numbers within its bounds",
        ),
        (
            "classes = [\"a\", \"b\"]\npositive = \"a\"\nbounds = [0, 1]\n",
            "`bounds` means nothing",
        ),
        ("", "list at least two in `classes`, or write kind"),
    ] {
        assert!(word(lines).contains(words), "{lines}: {}", word(lines));
    }
}
