//! Parties that cheat, and succeed: why engine `lookup` is for parties that keep to the protocol.
//! The cheat lives here, the other side is the real code. `docs/lookup-attacks.md` tells the story.

use super::tests::{FEATURES, SEED, dataset, houses_for, spec};
use super::{Encrypted, LookupUser, tag};
use crate::codec::hex;
use crate::engine::columns::columns_of;
use crate::engine::{GradientAsk, Joined, Part, Terms, UserEngine};
use crate::job::{Provider, Served};
use crate::message::{Acceptance, Announcements, Command, Message};
use crate::proposal::{Proposal, Split};
use crate::rows::{RowOrder, fresh_row_seed, on_grid};
use ed25519_dalek::SigningKey;
use heda_blocks::channel::Channel;
use heda_blocks::lookup::TableReader;
use heda_crypto::lattice::{EncryptedMatrix, SecretKey};
use heda_crypto::random::Randomness;
use heda_learn::data::Dataset;
use heda_learn::fixed::{RING, Scaled};
use heda_learn::gradient::Batch;
use heda_learn::loss::LossKind;
use heda_learn::ring::Ring;
use std::time::Duration;

/// What a cheat knows of the lattice layer: its public parameters and how its messages look.
const DEGREE: usize = 8192;
const PRIMES: [u64; 3] = [
    4_611_686_018_427_322_369,
    4_611_686_018_427_289_601,
    4_611_686_018_426_454_017,
];
const HEADER: usize = 44;
const SEED_BYTES: usize = 32;
const RESIDUES: Ring = Ring::of(62);
/// Columns of the small data set; the last three are levels of one category.
const WIDTH: usize = 6;
const LEVELS: usize = 3;
/// One on the grid has 11 bits.
const CELL_BITS: usize = 11;

/// The distance between rows in a ciphertext, from a message's header.
fn stride(message: &[u8]) -> usize {
    u32::from_le_bytes(std::array::from_fn(|i| message[40 + i])) as usize
}

/// A data user that keeps to the protocol only where it must.
struct Cheat {
    user: LookupUser,
    iteration: u32,
}

/// J1 to J8 as any data user does them.
fn join(proposal: &Proposal, features: &Dataset, mut channels: Vec<Channel>) -> Cheat {
    let mut announcements = Vec::new();
    let mut parts = Vec::new();
    for channel in &mut channels {
        proposal.send(channel).unwrap();
        let accepted = Acceptance::receive(channel, ()).unwrap();
        announcements.extend(accepted.announcement.0);
        parts.push(Part {
            rows: accepted.rows,
            held_out: accepted.held_out,
        });
    }
    let split = Split {
        encrypted: (0..FEATURES).collect(),
        published: Vec::new(),
        dropped: Vec::new(),
    };
    for channel in &mut channels {
        Announcements(announcements.clone()).send(channel).unwrap();
        split.send(channel).unwrap();
    }
    let (features, columns) = columns_of(features.features(), &split);
    let terms = Terms {
        proposal,
        features: &features,
        columns: &columns,
    };
    let joined = channels.into_iter().zip(parts).enumerate();
    let joined = joined.map(|(at, (channel, part))| Joined {
        name: format!("provider-{}", at + 1),
        channel,
        part,
        seeded: false,
        charge: None,
        open: Vec::new(),
    });
    let randomness = Randomness::seeded(99);
    let user = LookupUser::set_up(&terms, joined.collect(), Encrypted::All, &randomness);
    Cheat {
        user: user.unwrap(),
        iteration: 0,
    }
}

/// Runs a cheating data user against real providers on threads of their own.
fn against<T>(parts: &[Dataset], attack: impl FnOnce(&mut Cheat) -> T) -> (T, Vec<Served>) {
    let randomness = Randomness::seeded(SEED);
    let houses = houses_for(parts, &randomness);
    let identity = |at: usize| SigningKey::from_bytes(&[at as u8 + 1; 32]);
    let identities: Vec<SigningKey> = (0..houses.len()).map(identity).collect();
    let mut spec = spec(LossKind::Logistic, FEATURES, 1);
    spec.settings.max_iterations = 1000;
    let names = identities.iter();
    let names = names.map(|identity| hex(identity.verifying_key().as_bytes()));
    let proposal = spec.proposal(names.collect(), false);
    let pair = |_| Channel::pair(Duration::from_secs(60));
    let (own, ends): (Vec<_>, Vec<_>) = houses.iter().map(pair).unzip();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for ((house, identity), mut channel) in houses.iter().zip(&identities).zip(ends) {
            let provider = Provider {
                house: house.house.as_ref(),
                identity,
                randomness: randomness.party(&house.name),
            };
            threads.push(scope.spawn(move || provider.serve(&mut channel).unwrap()));
        }
        let mut cheat = join(&proposal, &parts[0], own);
        let stolen = attack(&mut cheat);
        for channel in cheat.user.channels() {
            Command::Finish.send(channel).unwrap();
        }
        let served = threads.into_iter().map(|thread| thread.join().unwrap());
        (stolen, served.collect())
    })
}

impl Cheat {
    /// One gradient in which the first provider's row `i` reads `entry(i, v)` at the place v that
    /// it decrypts from `scores`; every other provider reads zeros.
    fn round(
        &mut self,
        fraction_bits: u32,
        scores: Option<&[u8]>,
        entry: impl Fn(usize, u64) -> u64 + Sync,
    ) -> Vec<u64> {
        let command = Command::Gradient {
            iteration: self.iteration,
            class: 0,
            batch: 0,
            fraction_bits,
        };
        self.iteration += 1;
        for (at, remote) in self.user.remotes.iter_mut().enumerate() {
            let batch = &remote.batches[0];
            let (rows, matrix) = (batch.rows, batch.matrix.as_ref().unwrap());
            let nothing = matrix.scores(&[0; WIDTH], &vec![0; rows], &mut remote.zeros);
            let nothing = nothing.unwrap();
            let scores = scores.filter(|_| at == 0).unwrap_or(&nothing);
            command.send(&mut remote.channel).unwrap();
            remote.channel.send(tag::SCORES, scores).unwrap();
            let fill = |row: usize, table: &mut [u64]| {
                for (v, place) in table.iter_mut().enumerate() {
                    *place = if at == 0 { entry(row, v as u64) } else { 0 };
                }
            };
            let served = remote.tables.serve(&mut remote.channel, rows, 8, fill);
            served.unwrap();
            let sums = matrix.weighted_sums(&vec![0; rows], &[0; WIDTH], &mut remote.zeros);
            remote.channel.send(tag::SUMS, &sums.unwrap()).unwrap();
        }
        let mut sum = vec![0; WIDTH + 1];
        for channel in self.user.channels() {
            let bytes = channel.receive(tag::GRADIENT, RING.encoded_length(sum.len()));
            let part = RING.decode(&bytes.unwrap(), sum.len()).unwrap();
            let both = sum.iter_mut().zip(part);
            both.for_each(|(sum, part)| *sum = RING.add(*sum, part));
        }
        sum
    }

    /// Every cell of three rows of the first provider: constant tables weigh them by 1, 2^11 and
    /// 2^22. Labels weigh 2^40 and stay above.
    fn three_rows(&mut self, first: usize) -> Vec<Vec<u32>> {
        let weight = |row: usize, _| match row.checked_sub(first) {
            Some(at @ 0..3) => 1 << (at * CELL_BITS),
            _ => 0,
        };
        let sums = self.round(40, None, weight);
        let cell = |sum: &u64, at: usize| (sum >> (at * CELL_BITS)) as u32 & 0x7ff;
        let row = |at| sums[1..].iter().map(|sum| cell(sum, at)).collect();
        (0..3).map(row).collect()
    }
}

/// A row whose decrypted digit can be read: the column of its level sums up nothing but rows of
/// that level, each in a byte of its own.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    row: usize,
    level: usize,
    byte: usize,
}

/// Four rows of every level, from rows that are known.
fn anchors(known: &[Vec<u32>]) -> Vec<Anchor> {
    let of_level = |level: usize| {
        let rows = known.iter().enumerate();
        let rows = rows.filter(move |(_, cells)| cells[WIDTH - LEVELS + level] == 1024);
        rows.take(4)
            .enumerate()
            .map(move |(byte, (row, _))| Anchor { row, level, byte })
    };
    (0..LEVELS).flat_map(of_level).collect()
}

/// Which coefficient of the key stands at `position` after a shift, and with which sign.
fn shifted(position: usize, shift: usize) -> (usize, i64) {
    match position.checked_sub(shift) {
        Some(at) => (at, 1),
        None => (position + DEGREE - shift, -1),
    }
}

/// Shifts that bring the most unknown coefficients to the anchors' places: five a round, because
/// 3^5 values fit into a byte.
fn shifts(known: &[Option<i64>], positions: &[usize]) -> Vec<usize> {
    let mut open: Vec<bool> = known.iter().map(Option::is_none).collect();
    let mut chosen = Vec::new();
    while chosen.len() < 5 {
        let Some(wanted) = open.iter().position(|open| *open) else {
            break;
        };
        let candidates = positions.iter().map(|at| (at + DEGREE - wanted) % DEGREE);
        let gain = |shift: &usize| {
            let brought = positions.iter().filter(|at| open[shifted(**at, *shift).0]);
            brought.count()
        };
        let best = candidates.max_by_key(gain).unwrap();
        positions
            .iter()
            .for_each(|at| open[shifted(*at, best).0] = false);
        chosen.push(best);
    }
    chosen
}

/// A share of the last modulus, in parts of 512.
fn share(parts: u128) -> u64 {
    (parts * u128::from(PRIMES[0]) / 512) as u64
}

/// "Scores" that decrypt, in the top byte, to 121 + Σ_j 3^j·s_(place − shift_j).
fn key_digits(header: &[u8], rows: usize, shifts: &[usize]) -> Vec<u8> {
    let mut second = vec![0; DEGREE];
    for (j, shift) in shifts.iter().enumerate() {
        second[*shift] = share(2 * 3u128.pow(j as u32));
    }
    let mut message = header.to_vec();
    message.extend(RESIDUES.encode(&second));
    message.extend(RESIDUES.encode(&vec![share(2 * 121 + 1); rows]));
    message
}

/// The provider's secret key, coefficient by coefficient, and in how many gradients.
fn steal_key(cheat: &mut Cheat, known_rows: &[Vec<u32>]) -> (Vec<i64>, u32) {
    let anchors = anchors(known_rows);
    assert_eq!(anchors.len(), 4 * LEVELS);
    let began = cheat.iteration;
    let remote = &mut cheat.user.remotes[0];
    let rows = remote.batches[0].rows;
    let matrix = remote.batches[0].matrix.as_ref().unwrap();
    let honest = matrix.scores(&[0; WIDTH], &vec![0; rows], &mut remote.zeros);
    let header = honest.unwrap()[..HEADER].to_vec();
    let places: Vec<usize> = anchors.iter().map(|a| a.row * stride(&header)).collect();
    let mut key = vec![None; DEGREE];
    while key.contains(&None) {
        let shifts = shifts(&key, &places);
        let message = key_digits(&header, rows, &shifts);
        let entry = |row: usize, v: u64| {
            let anchor = anchors.iter().find(|anchor| anchor.row == row);
            anchor.map_or(0, |anchor| v << (8 * anchor.byte))
        };
        // A label weighs 2^38 on a grid of 2^10: nothing modulo 2^48.
        let sums = cheat.round(38, Some(&message), entry);
        for (anchor, place) in anchors.iter().zip(&places) {
            let sum = sums[1 + WIDTH - LEVELS + anchor.level] >> 10;
            let mut digits = (sum >> (8 * anchor.byte) & 0xff) as i64 - 121;
            for shift in &shifts {
                let digit = (digits + 1).rem_euclid(3) - 1;
                digits = (digits - digit) / 3;
                let (coefficient, sign) = shifted(*place, *shift);
                key[coefficient] = Some(sign * digit);
            }
            assert_eq!(digits, 0);
        }
    }
    let key = key.into_iter().map(Option::unwrap).collect();
    (key, cheat.iteration - began)
}

/// What is under encryption in a matrix of the provider, by its own key.
fn open(
    matrix: &EncryptedMatrix,
    zeros: &mut heda_crypto::lattice::ZeroPool,
    key: &[i64],
) -> Vec<u32> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let mut cells = vec![0; rows * columns];
    for column in 0..columns {
        let mut one = vec![0; columns];
        one[column] = 1;
        let message = matrix.scores(&one, &vec![0; rows], zeros).unwrap();
        let (second, first) = message[HEADER..].split_at(RESIDUES.encoded_length(DEGREE));
        let second = RESIDUES.decode(second, DEGREE).unwrap();
        let first = RESIDUES.decode(first, rows).unwrap();
        for (row, first) in first.iter().enumerate() {
            let place = row * stride(&message);
            let terms = second.iter().enumerate().map(|(shift, residue)| {
                let (coefficient, sign) = shifted(place, shift);
                i128::from(*residue) * i128::from(sign * key[coefficient])
            });
            let modulus = i128::from(PRIMES[0]);
            let phase = (terms.sum::<i128>() + i128::from(*first)).rem_euclid(modulus);
            let number = ((phase << 48) + modulus / 2) / modulus;
            cells[row * columns + column] = number as u32;
        }
    }
    cells
}

/// Attack 1 of issue 16. The data user reads rows, then the key, then every cell and every held-out
/// label of the first provider; both providers end as after any other job.
#[test]
fn a_cheating_data_user_reads_rows_then_the_key_then_everything() {
    let parts = [dataset(150, 1), dataset(60, 2)];
    let ((rows, rows_took, key_took, everything), served) = against(&parts, |cheat| {
        let rows: Vec<Vec<u32>> = (0..8).flat_map(|at| cheat.three_rows(3 * at)).collect();
        let rows_took = cheat.iteration;
        let (key, key_took) = steal_key(cheat, &rows);
        let remote = &mut cheat.user.remotes[0];
        let held_out = remote.held_out.as_ref().unwrap();
        let training = remote.batches[0].matrix.as_ref().unwrap();
        let matrices = [training, &held_out.matrix, &held_out.labels[0]];
        let everything = matrices.map(|matrix| open(matrix, &mut remote.zeros, &key));
        (rows, rows_took, key_took, everything)
    });
    let own = Randomness::seeded(SEED).party("provider-1");
    let order = RowOrder::draw(150, 200, &fresh_row_seed(&own).unwrap());
    let (training, held_out) = order.cut(&parts[0]);
    let cells = on_grid(training.values(), 10);
    assert_eq!(rows.concat(), cells[..24 * WIDTH]);
    let expected = [
        cells,
        on_grid(held_out.values(), 10),
        held_out.labels().to_vec(),
    ];
    assert_eq!(everything, expected);
    assert_eq!(rows_took, 8);
    assert!(key_took < 200, "{key_took} gradients");
    for served in &served {
        assert_eq!(served.iterations, rows_took + key_took);
    }
    println!("24 rows in {rows_took} gradients, the key in {key_took}");
}

/// q·2^−m/2^48 modulo a prime of q, rounded down: how 2^−m would lie in a ciphertext.
fn encoded_fraction(prime: u64, m: u32) -> u64 {
    let bits = 48 + m;
    let modulus = PRIMES
        .iter()
        .fold(1u128, |q, p| q.wrapping_mul(u128::from(*p)));
    let rest = (modulus & ((1 << bits) - 1)) % u128::from(prime);
    let half = u128::from(prime).div_ceil(2);
    let scaled = (0..bits).fold(rest, |x, _| x * half % u128::from(prime));
    prime - scaled as u64
}

/// Bits of a weight.
const WEIGHT_BITS: usize = 48;

/// An encrypted "matrix" with 2^−m in column j of row (j, m), and zeros elsewhere.
fn fractions(key: &SecretKey, rows: usize) -> Vec<u8> {
    let mut rng = Randomness::seeded(5).fork("fractions", 0).unwrap();
    let zeros = vec![0; rows * WIDTH];
    let matrix = key.encrypt_matrix(&zeros, rows, WIDTH, &mut rng).unwrap();
    let mut bytes = matrix.to_bytes();
    let stride = stride(&bytes);
    let body = bytes.split_off(HEADER + SEED_BYTES);
    let residues = body.chunks(RESIDUES.encoded_length(DEGREE)).zip(PRIMES);
    for (residues, prime) in residues {
        let mut residues = RESIDUES.decode(residues, DEGREE).unwrap();
        for row in 0..rows {
            let place = row * stride + row / WEIGHT_BITS;
            let fraction = encoded_fraction(prime, (row % WEIGHT_BITS) as u32 + 1);
            residues[place] = (residues[place] + fraction) % prime;
        }
        bytes.extend(RESIDUES.encode(&residues));
    }
    bytes
}

/// The weights in the fractions of an answer, bit by bit from the lowest.
fn read_weights(key: &SecretKey, scores: &[u8], rows: usize) -> Vec<u64> {
    // Sixteen times the ciphertext: the mask, a whole number, leaves the lowest four bits alone.
    let mut scaled = scores[..HEADER].to_vec();
    let (second, first) = scores[HEADER..].split_at(RESIDUES.encoded_length(DEGREE));
    for (bytes, count) in [(second, DEGREE), (first, rows)] {
        let times = |r: u64| (u128::from(r) * 16 % u128::from(PRIMES[0])) as u64;
        let residues = RESIDUES.decode(bytes, count).unwrap();
        let residues: Vec<u64> = residues.into_iter().map(times).collect();
        scaled.extend(RESIDUES.encode(&residues));
    }
    let numbers = key.decrypt_scores(&scaled, rows, WIDTH).unwrap();
    let weight = |sixteenths: &[u64]| {
        let bits = sixteenths.iter().zip(0..);
        bits.fold(0u64, |known, (read, m)| {
            let lower = ((u128::from(known) * 16) >> (m + 1)) as u64;
            let rest = read.wrapping_sub(lower) % 16;
            known | u64::from((4..12).contains(&rest)) << m
        })
    };
    numbers.chunks(WEIGHT_BITS).map(weight).collect()
}

/// A provider that sends fractions and looks at one answer.
fn fraction_provider(mut channel: Channel, rows: usize) -> Vec<u64> {
    let mut rng = Randomness::seeded(4).fork("provider", 0).unwrap();
    let key = SecretKey::generate(&mut rng).unwrap();
    let public = key.public_key().to_bytes();
    channel.send(tag::PUBLIC_KEY, &public).unwrap();
    channel.send(tag::MATRIX, &fractions(&key, rows)).unwrap();
    let mut tables = TableReader::set_up(&mut channel, &mut rng).unwrap();
    Command::receive(&mut channel, ()).unwrap();
    let limit = EncryptedMatrix::scores_length(rows, WIDTH).unwrap();
    let scores = channel.receive(tag::SCORES, limit).unwrap();
    let weights = read_weights(&key, &scores, rows);
    // It goes on, so that nobody notices.
    tables.read(&mut channel, &vec![0; rows], 8).unwrap();
    let limit = EncryptedMatrix::sums_length(rows, WIDTH).unwrap();
    channel.receive(tag::SUMS, limit).unwrap();
    let gradient = RING.encode(&[0; WIDTH + 1]);
    channel.send(tag::GRADIENT, &gradient).unwrap();
    weights
}

/// Attack 2 of issue 16. Every weight, to its last bit, from one answer of the real data user.
#[test]
fn a_cheating_provider_reads_all_weights_from_one_answer() {
    let rows = WIDTH * WEIGHT_BITS;
    let spec = spec(LossKind::Logistic, FEATURES, 1);
    let proposal = spec.proposal(vec![hex(&[1; 32])], false);
    let split = Split {
        encrypted: (0..FEATURES).collect(),
        published: Vec::new(),
        dropped: Vec::new(),
    };
    let (features, columns) = columns_of(dataset(2, 1).features(), &split);
    let terms = Terms {
        proposal: &proposal,
        features: &features,
        columns: &columns,
    };
    let (own, end) = Channel::pair(Duration::from_secs(60));
    let cheat = std::thread::spawn(move || fraction_provider(end, rows));
    let joined = Joined {
        name: "provider-1".into(),
        channel: own,
        part: Part { rows, held_out: 0 },
        seeded: false,
        charge: None,
        open: Vec::new(),
    };
    let randomness = Randomness::seeded(3);
    let user = LookupUser::set_up(&terms, vec![joined], Encrypted::All, &randomness);
    let mut user = user.unwrap();
    let beta = [0.3, 2.0, -1.25, 0.001, 0.7, -0.2, 1.0];
    let ask = GradientAsk {
        beta: &beta,
        class: 0,
        batch: Batch::FULL,
        iteration: 0,
    };
    user.gradient(ask).unwrap();
    let scaled = Scaled::new(&beta, &user.domain, user.precision).unwrap();
    let expected: Vec<u64> = scaled
        .weights
        .iter()
        .map(|w| RING.from_signed(*w))
        .collect();
    assert_eq!(cheat.join().unwrap(), expected);
    assert!(expected.iter().all(|weight| *weight != 0));
}
