//! Transfers: setup, requests, and pads, each role by itself, on one thread, at 26,048 rows.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use heda_crypto::random::Randomness;
use heda_crypto::transfer::{
    BitRequest, Chooser, ChooserSetup, FieldBits, IndexCorrections, IndexRequest, Sender,
    SenderSetup, SetupFirst, SetupSecond, SetupThird,
};
use rand_core::CryptoRng;
use std::hint::black_box;

const ROWS: usize = 26_048;
/// 14 words of 28 bits.
const PAD_BYTES: usize = 49;

fn rng() -> impl CryptoRng {
    Randomness::seeded(1).fork("bench", 0).expect("seeded")
}

fn session(field: FieldBits) -> (Chooser, Sender) {
    let (chooser, first) = ChooserSetup::start(field, b"bench", &mut rng());
    let (sender, second) = SenderSetup::answer(field, b"bench", &first, &mut rng());
    let (chooser, third) = chooser.finish(&second, &mut rng()).expect("second message");
    (chooser, sender.finish(&third).expect("third message"))
}

fn setup(criterion: &mut Criterion) {
    let field = FieldBits::DEFAULT;
    println!(
        "setup: {} + {} + {} bytes",
        SetupFirst::BYTES,
        SetupSecond::bytes(field),
        SetupThird::bytes(field)
    );
    criterion.bench_function("transfer setup, both sides", |bencher| {
        bencher.iter(|| black_box(session(field)));
    });
}

fn one_of_two(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("transfer 1 of 2");
    group
        .sample_size(20)
        .throughput(Throughput::Elements(ROWS as u64));
    let field = FieldBits::DEFAULT;
    let bytes = BitRequest::bytes(field, ROWS).expect("a size that is possible");
    println!(
        "request: {bytes} bytes, {:.2} a transfer",
        bytes as f64 / ROWS as f64
    );
    let (mut chooser, _) = session(field);
    group.bench_function("chooser's request", |bencher| {
        bencher.iter(|| black_box(chooser.extend_bits(ROWS).expect("request")));
    });
    let (mut chooser, mut sender) = session(field);
    group.bench_function("sender's check", |bencher| {
        let request = || chooser.extend_bits(ROWS).expect("request").0;
        let accept = |request| black_box(sender.accept_bits(&request).expect("keys"));
        bencher.iter_batched(request, accept, BatchSize::PerIteration);
    });
    let (mut chooser, mut sender) = session(field);
    let wanted: Vec<bool> = (0..ROWS).map(|n| n % 3 == 0).collect();
    let mut both = || {
        let (request, random) = chooser.extend_bits(ROWS).expect("request");
        let keys = sender.accept_bits(&request).expect("keys");
        let (corrections, chosen) = random.correct(&wanted).expect("as many");
        (keys, corrections, chosen)
    };
    group.bench_function("chooser's pads of 49 bytes", |bencher| {
        let pads = |(_, _, chosen): (_, _, heda_crypto::transfer::ChosenBits)| {
            chosen.pads(PAD_BYTES, |_, pad| {
                black_box(pad);
            })
        };
        bencher.iter_batched(&mut both, pads, BatchSize::PerIteration);
    });
    group.bench_function("sender's pads of 49 bytes", |bencher| {
        let pads = |(keys, corrections, _): (heda_crypto::transfer::BitKeys, _, _)| {
            keys.pads(&corrections, PAD_BYTES, |_, zero, one| {
                black_box((zero, one));
            })
        };
        bencher.iter_batched(&mut both, pads, BatchSize::PerIteration);
    });
    group.finish();
}

fn one_of_64(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("transfer 1 of 64");
    group
        .sample_size(20)
        .throughput(Throughput::Elements(ROWS as u64));
    let field = FieldBits::DEFAULT;
    let bytes = IndexRequest::bytes(field, ROWS).expect("a size that is possible");
    println!(
        "request: {bytes} bytes, {:.2} a transfer; corrections: {} bytes",
        bytes as f64 / ROWS as f64,
        IndexCorrections::bytes(field, ROWS)
    );
    let (mut chooser, _) = session(field);
    group.bench_function("chooser's request", |bencher| {
        bencher.iter(|| black_box(chooser.extend_indices(ROWS).expect("request")));
    });
    let (mut chooser, mut sender) = session(field);
    group.bench_function("sender's check", |bencher| {
        let request = || chooser.extend_indices(ROWS).expect("request").0;
        let accept = |request| black_box(sender.accept_indices(&request).expect("keys"));
        bencher.iter_batched(request, accept, BatchSize::PerIteration);
    });
    let (mut chooser, mut sender) = session(field);
    let wanted: Vec<u8> = (0..ROWS).map(|n| (n * 31 % 64) as u8).collect();
    let mut both = || {
        let (request, random) = chooser.extend_indices(ROWS).expect("request");
        let keys = sender.accept_indices(&request).expect("keys");
        let (corrections, chosen) = random.correct(&wanted).expect("as many");
        (keys, corrections, chosen)
    };
    group.bench_function("chooser's pads of 1 bit", |bencher| {
        let pads = |(_, _, chosen): (_, _, heda_crypto::transfer::ChosenIndices)| {
            black_box(chosen.pads(1).expect("pads"))
        };
        bencher.iter_batched(&mut both, pads, BatchSize::PerIteration);
    });
    group.bench_function("sender's pads of 1 bit", |bencher| {
        let pads = |(keys, corrections, _): (heda_crypto::transfer::IndexKeys, _, _)| {
            keys.pads(&corrections, 6, 1, |_, pads| {
                black_box(pads);
            })
        };
        bencher.iter_batched(&mut both, pads, BatchSize::PerIteration);
    });
    group.finish();
}

fn on_one_thread(criterion: &mut Criterion) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.build_global().expect("the first and only pool");
    setup(criterion);
    one_of_two(criterion);
    one_of_64(criterion);
}

criterion_group!(benches, on_one_thread);
criterion_main!(benches);
