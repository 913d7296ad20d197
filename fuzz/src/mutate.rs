//! Mutations of valid encodings.

/// A small generator (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
#[derive(Debug, Clone)]
pub struct SplitMix(u64);

impl SplitMix {
    /// A generator that depends on the seed only.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, or 0 if there is none.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound.max(1) as u64) as usize
    }
}

/// Values at which integer arithmetic tends to go wrong.
const INTERESTING: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 63,
    u64::MAX,
];

/// Numbers in text at which readers tend to go wrong.
const INTERESTING_TEXT: [&str; 12] = [
    "0",
    "-1",
    "1e308",
    "-0.0",
    "1e-320",
    "nan",
    "inf",
    "255",
    "65536",
    "4294967296",
    "9223372036854775808",
    "99999999999999999999999999",
];

/// The most bytes that one step adds.
const LONGEST_EXTENSION: usize = 64;

/// An endless source of mutated inputs.
#[derive(Debug)]
pub struct Mutator<'a> {
    seeds: &'a [Vec<u8>],
    random: SplitMix,
}

impl<'a> Mutator<'a> {
    /// Mutates these seeds, of which there must be one at least.
    pub fn new(seeds: &'a [Vec<u8>], random: SplitMix) -> Self {
        Self { seeds, random }
    }

    /// A seed after one to four steps.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.seeds[self.random.below(self.seeds.len())].clone();
        for _ in 0..=self.random.below(4) {
            self.step(&mut input);
        }
        input
    }

    fn step(&mut self, input: &mut Vec<u8>) {
        match self.random.below(9) {
            0 => self.flip_bit(input),
            1 => self.set_byte(input),
            2 => input.truncate(self.random.below(input.len())),
            3 => self.extend(input),
            4 => self.splice(input),
            5 => self.nudge_length(input),
            6 => self.remove_or_repeat(input),
            7 => self.write_number(input),
            _ => self.plant_integer(input),
        }
    }

    fn flip_bit(&mut self, input: &mut [u8]) {
        let at = self.random.below(input.len());
        if let Some(byte) = input.get_mut(at) {
            *byte ^= 1 << self.random.below(8);
        }
    }

    fn set_byte(&mut self, input: &mut [u8]) {
        let at = self.random.below(input.len());
        if let Some(byte) = input.get_mut(at) {
            *byte = self.random.next_u64() as u8;
        }
    }

    fn extend(&mut self, input: &mut Vec<u8>) {
        let fill = [0, 0xff, self.random.next_u64() as u8][self.random.below(3)];
        let extra = 1 + self.random.below(LONGEST_EXTENSION);
        input.resize(input.len() + extra, fill);
    }

    /// The beginning of the input, then the end of some seed.
    fn splice(&mut self, input: &mut Vec<u8>) {
        let other = &self.seeds[self.random.below(self.seeds.len())];
        input.truncate(self.random.below(input.len() + 1));
        input.extend_from_slice(&other[self.random.below(other.len() + 1)..]);
    }

    /// Adds a small number to a field of 1, 2, 4 or 8 bytes, mostly near the beginning.
    fn nudge_length(&mut self, input: &mut [u8]) {
        let delta = (self.random.below(33) as u64).wrapping_sub(16);
        self.edit_field(input, |value| value.wrapping_add(delta));
    }

    fn plant_integer(&mut self, input: &mut [u8]) {
        let planted = INTERESTING[self.random.below(INTERESTING.len())];
        self.edit_field(input, |_| planted);
    }

    /// Puts another number in place of one that stands in the text.
    fn write_number(&mut self, input: &mut Vec<u8>) {
        let from = self.random.below(input.len());
        let is_digit = |byte: &u8| byte.is_ascii_digit();
        let Some(skipped) = input[from..].iter().position(is_digit) else {
            return;
        };
        let from = from + skipped;
        let digits = input[from..]
            .iter()
            .take_while(|byte| is_digit(byte))
            .count();
        let number = INTERESTING_TEXT[self.random.below(INTERESTING_TEXT.len())];
        input.splice(from..from + digits, number.bytes());
    }

    fn edit_field(&mut self, input: &mut [u8], edit: impl Fn(u64) -> u64) {
        let width = 1 << self.random.below(4);
        let reach = match self.random.below(2) {
            0 => input.len().min(32),
            _ => input.len(),
        };
        let at = self.random.below(reach);
        let big_endian = self.random.below(2) == 0;
        let Some(field) = input.get_mut(at..at + width) else {
            return;
        };
        let mut value = [0; 8];
        value[..width].copy_from_slice(field);
        if big_endian {
            value[..width].reverse();
        }
        let mut edited = edit(u64::from_le_bytes(value)).to_le_bytes();
        if big_endian {
            edited[..width].reverse();
        }
        field.copy_from_slice(&edited[..width]);
    }

    fn remove_or_repeat(&mut self, input: &mut Vec<u8>) {
        let from = self.random.below(input.len());
        let to = from
            + self
                .random
                .below((input.len() - from).min(LONGEST_EXTENSION) + 1);
        let part = input[from..to].to_vec();
        match self.random.below(2) {
            0 => drop(input.drain(from..to)),
            _ => drop(input.splice(to..to, part)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutation_copes_with_empty_and_short_seeds() {
        let seeds = vec![vec![], vec![1], vec![1, 2, 3]];
        let mut mutator = Mutator::new(&seeds, SplitMix::new(3));
        let longest = (0..20_000).map(|_| mutator.next_input().len()).max();
        assert!(longest > Some(LONGEST_EXTENSION / 2));
    }

    #[test]
    fn numbers_in_text_are_replaced() {
        let seeds = vec![b"rows = 17".to_vec()];
        let mut mutator = Mutator::new(&seeds, SplitMix::new(5));
        assert!((0..1000).any(|_| mutator.next_input() == b"rows = 65536"));
    }

    #[test]
    fn lengths_shrink_stay_and_grow_and_fields_are_edited() {
        let seeds = vec![vec![7; 100]];
        let mut mutator = Mutator::new(&seeds, SplitMix::new(4));
        let inputs: Vec<_> = (0..1000).map(|_| mutator.next_input()).collect();
        assert!(inputs.iter().any(|input| input.len() < 100));
        assert!(inputs.iter().any(|input| input.len() > 100));
        assert!(
            inputs
                .iter()
                .any(|input| input.len() == 100 && input != &seeds[0])
        );
        assert!(
            inputs
                .iter()
                .any(|input| input.windows(4).any(|w| w == [0xff; 4]))
        );
    }
}
