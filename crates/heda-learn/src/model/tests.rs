use super::*;
use crate::bundled::{Bundle, Coding};
use crate::oracle::{TrainConfig, train, train_one_vs_rest};

fn bcwd() -> (Model, crate::data::Dataset) {
    let (data, _) = Bundle::Bcwd.table(Coding::Natural).unwrap();
    let fit = train(&data, 1, &TrainConfig::logistic()).unwrap();
    let provenance = Provenance {
        dataset: "bcwd".into(),
        engine: "clear".into(),
        features: vec![FeatureUse {
            feature: "mitoses".into(),
            protection: Protection::Published,
            epsilon: Some(0.1),
        }],
        ..Provenance::default()
    };
    let schema = Bundle::Bcwd.schema(Coding::Natural);
    let model = Model::new(LossKind::Logistic, schema, &[fit.beta], provenance).unwrap();
    (model, data)
}

#[test]
fn a_model_survives_its_file_bit_by_bit() {
    let (model, _) = bcwd();
    let text = model.to_json();
    assert_eq!(Model::from_json(&text, "m.json").unwrap(), model);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.json");
    std::fs::write(&path, text).unwrap();
    assert_eq!(Model::read(&path).unwrap(), model);
}

#[test]
fn original_units_give_the_same_scores() {
    let (model, data) = bcwd();
    let columns = model.schema().encoded_columns();
    let original = &model.classifiers()[0].original;
    for row in 0..data.rows() {
        let encoded = data.row(row);
        let raw = columns
            .iter()
            .zip(encoded)
            .map(|(c, x)| c.offset + c.scale * x);
        let terms = original.coefficients.iter().zip(raw);
        let z = original.intercept + terms.map(|(c, x)| c.value * x).sum::<f64>();
        assert!((z - model.predict(encoded).scores[0]).abs() < 1e-9);
    }
}

#[test]
fn what_lies_beyond_the_reach_counts_as_its_end() {
    let (plain, data) = bcwd();
    let width = plain.schema().width();
    let mut ends = vec![[0.0, 1.0]; width];
    ends[2] = [0.25, 0.5];
    let reach = ClipRange::new(ends).unwrap();
    let model = plain.clone().with_reach(reach.clone()).unwrap();
    let mut moved = 0;
    for row in 0..data.rows() {
        let (found, whole) = (model.predict(data.row(row)), plain.predict(data.row(row)));
        assert_eq!(found, plain.predict(&reach.within(data.row(row))));
        moved += usize::from(found != whole);
    }
    assert!(moved > 100, "{moved}");
    let text = model.to_json();
    assert_eq!(Model::from_json(&text, "m.json").unwrap(), model);
    assert!(!plain.to_json().contains("reach"));
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["reach"][0] = serde_json::json!([0.5, 0.25]);
    let error = Model::from_json(&value.to_string(), "m.json").unwrap_err();
    assert!(
        error.to_string().contains("the reach of column 0"),
        "{error}"
    );
    value["reach"] = serde_json::json!([[0.0, 1.0]]);
    let error = Model::from_json(&value.to_string(), "m.json").unwrap_err();
    assert!(matches!(
        error,
        ModelError::ClipRange {
            columns: 9,
            found: 1
        }
    ));
}

#[test]
fn evaluation_agrees_with_prediction() {
    let (model, data) = bcwd();
    let evaluation = model.evaluate(&data);
    assert_eq!(evaluation.rows, data.rows());
    let right = (0..data.rows())
        .filter(|&row| model.predict(data.row(row)).class == data.labels()[row])
        .count();
    assert_eq!(evaluation.accuracy, Some(right as f64 / data.rows() as f64));
    assert!(evaluation.accuracy.unwrap() > 0.95);
    assert!(evaluation.auc.unwrap() > 0.99);
    assert!(evaluation.log_loss.unwrap() < 0.15);
}

#[test]
fn three_classes_and_more_are_one_against_the_rest() {
    let text = "car schema with four classes";
    let schema = Bundle::Car.schema_text(Coding::Natural);
    let four = schema
        .lines()
        .filter(|line| !line.trim_start().starts_with("positive"))
        .collect::<Vec<_>>()
        .join("\n");
    let schema = Schema::parse(&four, text).unwrap();
    let (data, _) = crate::table::TableReader::new(&schema)
        .read_csv(Bundle::Car.csv(), "car.csv")
        .unwrap();
    let fits = train_one_vs_rest(&data, &TrainConfig::logistic()).unwrap();
    let betas: Vec<Vec<f64>> = fits.into_iter().map(|f| f.beta).collect();
    let model = Model::new(LossKind::Logistic, schema, &betas, Provenance::default()).unwrap();
    assert_eq!(model.classifiers().len(), 4);
    let evaluation = model.evaluate(&data);
    assert!(evaluation.accuracy.unwrap() > 0.77, "{evaluation:?}");
    assert_eq!(evaluation.auc, None);
    assert!(evaluation.log_loss.unwrap() < 0.6);
    let sum: f64 = model
        .predict(data.row(0))
        .probabilities
        .unwrap()
        .iter()
        .sum();
    assert!((sum - 1.0).abs() < 1e-12);
    assert_eq!(Model::from_json(&model.to_json(), "m.json").unwrap(), model);
}

#[test]
fn refuses_files_that_are_no_models() {
    let (model, _) = bcwd();
    let text = model.to_json();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = value.clone();
        change(&mut value);
        Model::from_json(&value.to_string(), "m.json").unwrap_err()
    };
    assert!(matches!(
        changed(&|v| v["format"] = 2.into()),
        ModelError::Format(2)
    ));
    assert!(matches!(
        changed(&|v| v["classifiers"] = serde_json::json!([])),
        ModelError::Classifiers { .. }
    ));
    assert!(matches!(
        changed(&|v| v["classifiers"][0]["class"] = "x".into()),
        ModelError::Class { .. }
    ));
    assert!(matches!(
        changed(&|v| v["classifiers"][0]["scaled"] = serde_json::json!([1.0])),
        ModelError::Coefficients { .. }
    ));
    assert!(matches!(
        changed(&|v| v["classifiers"][0]["scaled"][1] = 1e3.into()),
        ModelError::Units(_)
    ));
    assert!(matches!(
        changed(&|v| v["schema"] = serde_json::json!({})),
        ModelError::Json { .. }
    ));
    for text in ["", "[]", "{", "{\"format\":1}", "{\"format\":1e999}"] {
        assert!(matches!(
            Model::from_json(text, "m.json"),
            Err(ModelError::Json { .. })
        ));
    }
    let schema = model.schema().clone();
    let beta = vec![f64::NAN; schema.width() + 1];
    let infinite = Model::new(LossKind::Logistic, schema, &[beta], Provenance::default());
    assert!(matches!(infinite, Err(ModelError::NotFinite(0))));
}
