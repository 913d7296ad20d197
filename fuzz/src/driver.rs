//! What a target is: a decoder, and valid encodings to start from.

use crate::corpus::Corpus;

/// What a decoder said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The input was decoded.
    Accepted,
    /// The input was refused with an error.
    Rejected,
}

impl<T, E> From<Result<T, E>> for Verdict {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(_) => Self::Accepted,
            Err(_) => Self::Rejected,
        }
    }
}

type Decoder = Box<dyn Fn(&[u8]) -> Verdict>;

/// A decoder with valid encodings to start from.
pub struct Target {
    pub(crate) seeds: Vec<Vec<u8>>,
    pub(crate) regressions: Vec<Vec<u8>>,
    pub(crate) short_run: u32,
    decode: Decoder,
}

impl Target {
    /// A target whose seeds must all be accepted. More of them may lie in the corpus.
    pub fn new(seeds: Vec<Vec<u8>>, decode: impl Fn(&[u8]) -> Verdict + 'static) -> Self {
        Self {
            seeds,
            regressions: Vec::new(),
            short_run: 3000,
            decode: Box::new(decode),
        }
    }

    /// Adds what the corpus has for this target.
    pub fn with_corpus(mut self, corpus: Corpus) -> Self {
        self.seeds.extend(corpus.seeds);
        self.regressions.extend(corpus.regressions);
        self
    }

    /// How many edited seeds the test tries; less than the usual 3000 for a slow decoder.
    pub fn short_run(mut self, cases: u32) -> Self {
        self.short_run = cases;
        self
    }

    /// Hands an input to the decoder.
    pub fn decode(&self, input: &[u8]) -> Verdict {
        (self.decode)(input)
    }

    /// Seeds and regressions: where a fuzzer starts.
    pub fn inputs(&self) -> impl Iterator<Item = &[u8]> {
        let all = self.seeds.iter().chain(&self.regressions);
        all.map(Vec::as_slice)
    }
}
