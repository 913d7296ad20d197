//! The few messages of ONNX's protocol buffers that a linear model needs. Field numbers are those
//! of `onnx.proto` (<https://github.com/onnx/onnx/blob/main/onnx/onnx.proto>).

/// A message under construction.
#[derive(Debug, Default)]
pub(super) struct ProtoMessage(Vec<u8>);

impl ProtoMessage {
    pub(super) fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    pub(super) fn bytes(&mut self, field: u64, value: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(super) fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    pub(super) fn message(&mut self, field: u64, value: &Self) {
        self.bytes(field, &value.0);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Seven bits a byte, the lowest first; the top bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// TensorProto.DataType.
#[derive(Debug, Clone, Copy)]
pub(super) enum Element {
    Float = 1,
    Int64 = 7,
}

/// AttributeProto.AttributeType of an integer.
const INTEGER: u64 = 2;

/// NodeProto: an operator.
#[derive(Debug)]
pub(super) struct ProtoNode {
    operator: &'static str,
    pub(super) inputs: Vec<String>,
    pub(super) output: String,
    attributes: Vec<(&'static str, u64)>,
}

impl ProtoNode {
    pub(super) fn new(operator: &'static str, inputs: &[&str], output: &str) -> Self {
        Self {
            operator,
            inputs: inputs.iter().map(|&i| i.to_owned()).collect(),
            output: output.to_owned(),
            attributes: Vec::new(),
        }
    }

    pub(super) fn with(mut self, name: &'static str, value: u64) -> Self {
        self.attributes.push((name, value));
        self
    }

    pub(super) fn encode(&self) -> ProtoMessage {
        let mut node = ProtoMessage::default();
        self.inputs.iter().for_each(|input| node.text(1, input));
        node.text(2, &self.output);
        node.text(4, self.operator);
        for &(name, value) in &self.attributes {
            let mut attribute = ProtoMessage::default();
            attribute.text(1, name);
            attribute.number(3, value);
            attribute.number(20, INTEGER);
            node.message(5, &attribute);
        }
        node
    }
}

/// TensorProto: a constant.
#[derive(Debug)]
pub(super) struct Tensor {
    pub(super) name: String,
    shape: Vec<usize>,
    element: Element,
    data: Vec<u8>,
}

impl Tensor {
    pub(super) fn floats(
        name: &str,
        shape: &[usize],
        values: impl IntoIterator<Item = f64>,
    ) -> Self {
        let bytes = values.into_iter().flat_map(|v| (v as f32).to_le_bytes());
        Self {
            name: name.to_owned(),
            shape: shape.to_vec(),
            element: Element::Float,
            data: bytes.collect(),
        }
    }

    pub(super) fn integers(
        name: &str,
        shape: &[usize],
        values: impl IntoIterator<Item = i64>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            shape: shape.to_vec(),
            element: Element::Int64,
            data: values.into_iter().flat_map(i64::to_le_bytes).collect(),
        }
    }

    pub(super) fn encode(&self) -> ProtoMessage {
        let mut tensor = ProtoMessage::default();
        for &size in &self.shape {
            tensor.number(1, size as u64);
        }
        tensor.number(2, self.element as u64);
        tensor.text(8, &self.name);
        tensor.bytes(9, &self.data);
        tensor
    }
}

/// ValueInfoProto: an input or output of N rows with the given further sizes.
pub(super) fn value(name: &str, element: Element, sizes: &[usize]) -> ProtoMessage {
    let mut shape = ProtoMessage::default();
    let mut rows = ProtoMessage::default();
    rows.text(2, "N");
    shape.message(1, &rows);
    for &size in sizes {
        let mut dimension = ProtoMessage::default();
        dimension.number(1, size as u64);
        shape.message(1, &dimension);
    }
    let mut tensor = ProtoMessage::default();
    tensor.number(1, element as u64);
    tensor.message(2, &shape);
    let mut kind = ProtoMessage::default();
    kind.message(1, &tensor);
    let mut value = ProtoMessage::default();
    value.text(1, name);
    value.message(2, &kind);
    value
}
