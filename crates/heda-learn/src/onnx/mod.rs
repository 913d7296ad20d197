//! A model as an ONNX file with plain operators, for any runtime.
//!
//! **Input** `rows`: float, \[N, width\]. One column for each column of the encoded row, in the
//! order and by the names that the file's metadata lists (`columns`), in *original* units:
//! numbers as they are (missing ones already replaced), an ordinal level by its position from 0 in
//! the schema, a one-hot level as 0 or 1. Values outside the schema's bounds, and of a private model
//! outside of what it was trained on, are clipped.
//!
//! **Outputs.** `scores` \[N, K\], K = 1 for two classes and otherwise the number of classes;
//! `probabilities` of the same shape for both logistic losses (of the second class if K = 1,
//! otherwise divided by their sum); `class` \[N\], an index into the metadata's `classes`. Of a
//! model that predicts a number there is one output, `number` \[N, 1\], in the label's own units.
//!
//! The graph scales as the schema does and uses the scaled coefficients, because original units
//! can differ by many powers of ten, too much for single precision.

mod proto;

use crate::loss::LossKind;
use crate::model::Model;
use proto::{Element, ProtoMessage, ProtoNode, Tensor};

/// The version of the ONNX format, and of its operators: old enough for every current runtime.
const IR_VERSION: u64 = 7;
const OPERATORS: u64 = 13;

/// The model as the bytes of an ONNX file.
pub fn export(model: &Model) -> Vec<u8> {
    let mut metadata = vec![
        (
            "columns",
            names(model.schema().encoded_columns().into_iter().map(|c| c.name)),
        ),
        ("classes", names(model.classes())),
        ("loss", model.loss().to_string()),
    ];
    let privacy = model.provenance().privacy.as_ref();
    let privacy = privacy.and_then(|guarantee| serde_json::to_string(guarantee).ok());
    metadata.extend(privacy.map(|guarantee| ("privacy", guarantee)));
    let mut file = ProtoMessage::default();
    file.number(1, IR_VERSION);
    file.text(2, "heda");
    file.text(3, env!("CARGO_PKG_VERSION"));
    file.message(7, &graph(model));
    let mut operators = ProtoMessage::default();
    operators.text(1, "");
    operators.number(2, OPERATORS);
    file.message(8, &operators);
    for (key, value) in metadata {
        let mut entry = ProtoMessage::default();
        entry.text(1, key);
        entry.text(2, &value);
        file.message(14, &entry);
    }
    file.into_bytes()
}

/// A JSON list of names.
fn names(names: impl IntoIterator<Item = String>) -> String {
    serde_json::Value::from_iter(names).to_string()
}

fn graph(model: &Model) -> ProtoMessage {
    let (width, outputs) = (model.schema().width(), model.classifiers().len());
    let mut graph = ProtoMessage::default();
    for node in nodes(model) {
        graph.message(1, &node.encode());
    }
    graph.text(2, "heda");
    for tensor in constants(model) {
        graph.message(5, &tensor.encode());
    }
    graph.message(11, &proto::value("rows", Element::Float, &[width]));
    let scores = scores(model);
    graph.message(12, &proto::value(scores, Element::Float, &[outputs]));
    if model.is_numeric() {
        return graph;
    }
    if has_probabilities(model) {
        graph.message(
            12,
            &proto::value("probabilities", Element::Float, &[outputs]),
        );
    }
    graph.message(12, &proto::value("class", Element::Int64, &[]));
    graph
}

/// What the weighted sums are called.
fn scores(model: &Model) -> &'static str {
    match model.is_numeric() {
        true => "number",
        false => "scores",
    }
}

fn has_probabilities(model: &Model) -> bool {
    model.loss().loss().probability(0.0).is_some()
}

/// From `scores` to the tensor `output`: one probability a score.
fn link(loss: LossKind, output: &str) -> Vec<ProtoNode> {
    match loss {
        // 1/(1 + t) above nought and t/(1 + t) below, with t = 2σ(−|z|).
        LossKind::BoundedLogistic => vec![
            ProtoNode::new("Abs", &["scores"], "distance"),
            ProtoNode::new("Neg", &["distance"], "inverse"),
            ProtoNode::new("Sigmoid", &["inverse"], "smaller"),
            ProtoNode::new("Add", &["smaller", "smaller"], "twice"),
            ProtoNode::new("Add", &["twice", "one"], "whole"),
            ProtoNode::new("Less", &["scores", "zero"], "below"),
            ProtoNode::new("Where", &["below", "twice", "one"], "part"),
            ProtoNode::new("Div", &["part", "whole"], output),
        ],
        _ => vec![ProtoNode::new("Sigmoid", &["scores"], output)],
    }
}

fn nodes(model: &Model) -> Vec<ProtoNode> {
    let mut nodes = vec![
        ProtoNode::new("Sub", &["rows", "offsets"], "shifted"),
        ProtoNode::new("Div", &["shifted", "scales"], "unbounded"),
        ProtoNode::new("Clip", &["unbounded", "zero", "one"], "scaled"),
    ];
    let seen = match model.reach() {
        Some(_) => {
            nodes.extend([
                ProtoNode::new("Max", &["scaled", "least"], "risen"),
                ProtoNode::new("Min", &["risen", "greatest"], "within"),
            ]);
            "within"
        }
        None => "scaled",
    };
    nodes.extend([
        ProtoNode::new("MatMul", &[seen, "weights"], "products"),
        ProtoNode::new("Add", &["products", "biases"], scores(model)),
    ]);
    if model.is_numeric() {
        return nodes;
    }
    let several = model.classifiers().len() > 1;
    match (has_probabilities(model), several) {
        (true, false) => nodes.extend(link(model.loss(), "probabilities")),
        (true, true) => {
            nodes.extend(link(model.loss(), "separate"));
            nodes.extend([
                ProtoNode::new("ReduceSum", &["separate", "second_axis"], "sum")
                    .with("keepdims", 1),
                ProtoNode::new("Div", &["separate", "sum"], "probabilities"),
            ]);
        }
        (false, _) => {}
    }
    match several {
        true => nodes.push(
            ProtoNode::new("ArgMax", &["scores"], "class")
                .with("axis", 1)
                .with("keepdims", 0),
        ),
        false => nodes.extend([
            ProtoNode::new("Greater", &["scores", "threshold"], "above"),
            ProtoNode::new("Cast", &["above"], "column").with("to", Element::Int64 as u64),
            ProtoNode::new("Squeeze", &["column", "second_axis"], "class"),
        ]),
    }
    nodes
}

fn constants(model: &Model) -> Vec<Tensor> {
    let columns = model.schema().encoded_columns();
    let (width, outputs) = (columns.len(), model.classifiers().len());
    let classifiers = model.classifiers();
    let weights = (1..=width).flat_map(|j| classifiers.iter().map(move |c| c.scaled[j]));
    let threshold = model.loss().loss().threshold();
    let mut constants = vec![
        Tensor::floats("offsets", &[width], columns.iter().map(|c| c.offset)),
        Tensor::floats("scales", &[width], columns.iter().map(|c| c.scale)),
        Tensor::floats("zero", &[], [0.0]),
        Tensor::floats("one", &[], [1.0]),
        Tensor::floats("weights", &[width, outputs], weights),
        Tensor::floats(
            "biases",
            &[outputs],
            classifiers.iter().map(|c| c.scaled[0]),
        ),
        Tensor::floats("threshold", &[], [threshold]),
        Tensor::integers("second_axis", &[1], [1]),
    ];
    if let Some(reach) = model.reach() {
        let ends = |end: usize| reach.ends().iter().map(move |ends| ends[end]);
        constants.extend([
            Tensor::floats("least", &[width], ends(0)),
            Tensor::floats("greatest", &[width], ends(1)),
        ]);
    }
    constants
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundled::{Bundle, Coding};
    use crate::model::Provenance;

    fn model(bundle: Bundle, loss: LossKind) -> Model {
        let schema = bundle.schema(Coding::Natural);
        let classifiers = match schema.label().classes().len() {
            2 => 1,
            several => several,
        };
        let width = schema.width();
        let betas = vec![vec![0.25; width + 1]; classifiers];
        let model = Model::new(loss, schema, &betas, Provenance::default()).unwrap();
        match loss {
            LossKind::BoundedLogistic => {
                let reach = crate::clip_range::ClipRange::new(vec![[0.1, 0.9]; width]).unwrap();
                model.with_reach(reach).unwrap()
            }
            _ => model,
        }
    }

    /// Splits a message into its fields; panics unless it is well-formed to the last byte.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..64).step_by(7) {
                let byte = bytes[0];
                *bytes = &bytes[1..];
                value |= u64::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    return value;
                }
            }
            panic!("a number that does not end");
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            match tag & 7 {
                0 => found.push((tag >> 3, varint(&mut bytes).to_le_bytes().to_vec())),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (content, rest) = bytes.split_at(length);
                    found.push((tag >> 3, content.to_vec()));
                    bytes = rest;
                }
                wire => panic!("wire type {wire}"),
            }
        }
        found
    }

    #[test]
    fn the_graph_holds_every_constant_and_ends_in_the_outputs() {
        for (bundle, loss) in [
            (Bundle::Bcwd, LossKind::Logistic),
            (Bundle::Crx, LossKind::SquaredHinge),
            (Bundle::Car, LossKind::Ridge),
            (Bundle::Adult, LossKind::BoundedLogistic),
        ] {
            let model = model(bundle, loss);
            let file = fields(&export(&model));
            assert_eq!(file[0], (1, IR_VERSION.to_le_bytes().to_vec()));
            let graph = &file.iter().find(|(tag, _)| *tag == 7).unwrap().1;
            let graph = fields(graph);
            let count = |tag| graph.iter().filter(|(t, _)| *t == tag).count();
            assert_eq!(count(5), constants(&model).len());
            assert_eq!(count(1), nodes(&model).len());
            assert_eq!(count(11), 1);
            assert_eq!(count(12), 2 + usize::from(has_probabilities(&model)));
        }
    }

    #[test]
    fn a_number_is_the_only_output_of_its_model() {
        let text = "format = 1\nname = \"t\"\n[label]\ncolumn = \"y\"\nkind = \"numeric\"\n\
                    bounds = [0, 9]\n[[column]]\nname = \"a\"\nkind = \"numeric\"\nbounds = [0, 2]\n";
        let schema = crate::schema::Schema::parse(text, "t").unwrap();
        let betas = [vec![1.0, 4.0]];
        let model = Model::new(LossKind::Ridge, schema, &betas, Provenance::default()).unwrap();
        assert_eq!(model.predict(&[0.5]).scores, [3.0]);
        assert_eq!(nodes(&model).last().unwrap().output, "number");
        let file = fields(&export(&model));
        let graph = fields(&file.iter().find(|(tag, _)| *tag == 7).unwrap().1);
        assert_eq!(graph.iter().filter(|(tag, _)| *tag == 12).count(), 1);
        let again = Model::from_json(&model.to_json(), "t").unwrap();
        assert_eq!(again, model);
        assert_eq!(again.classifiers()[0].class, "y");
    }

    #[test]
    fn every_input_of_a_node_is_made_before_it() {
        for bundle in Bundle::ALL {
            for loss in [
                LossKind::Logistic,
                LossKind::BoundedLogistic,
                LossKind::SquaredHinge,
            ] {
                let model = model(bundle, loss);
                let mut known: Vec<String> =
                    constants(&model).iter().map(|t| t.name.clone()).collect();
                known.push("rows".into());
                for node in nodes(&model) {
                    assert!(node.inputs.iter().all(|i| known.contains(i)), "{node:?}");
                    known.push(node.output.clone());
                }
                assert!(known.contains(&"class".into()));
            }
        }
    }
}
