//! Oblivious transfer: setup, random transfers and lookups, both sides, on one thread.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use heda_crypto::ot::{ChooserSetup, LookupChooser, LookupSender};
use heda_crypto::random::Randomness;
use rand_core::CryptoRng;
use std::hint::black_box;

const TRANSFERS: usize = 1 << 20;
const ROWS: usize = 100_000;

fn rng() -> impl CryptoRng {
    Randomness::seeded(1).fork("bench", 0).expect("seeded")
}

fn session() -> (LookupChooser, LookupSender) {
    let (setup, first) = ChooserSetup::start(&mut rng());
    let (sender, second) = LookupSender::setup(&first, &mut rng()).expect("first message");
    (setup.finish(&second).expect("second message"), sender)
}

fn setup(criterion: &mut Criterion) {
    criterion.bench_function("ot setup", |bencher| bencher.iter(|| black_box(session())));
}

fn random(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ot random");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(TRANSFERS as u64));
    let (mut chooser, mut sender) = session();
    let choices: Vec<bool> = (0..TRANSFERS).map(|n| n % 3 == 0).collect();
    group.bench_function("2^20 transfers", |bencher| {
        bencher.iter(|| {
            let (request, keys) = chooser.random(&choices).expect("request");
            let pairs = sender.random(&request, TRANSFERS).expect("keys");
            black_box((keys, pairs))
        });
    });
    group.finish();
}

fn lookups(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ot lookup 1 of 256, 6 bytes");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(ROWS as u64));
    let (mut chooser, mut sender) = session();
    let indices: Vec<u16> = (0..ROWS).map(|row| (row * 31 % 256) as u16).collect();
    let fill = |row: usize, table: &mut [u64]| {
        table
            .iter_mut()
            .zip(row as u64..)
            .for_each(|(entry, value)| *entry = value);
    };
    group.bench_function("all", |bencher| {
        bencher.iter(|| {
            let (request, pending) = chooser.request(&indices, 8).expect("request");
            let answer = sender.answer_u48(&request, ROWS, 8, fill).expect("answer");
            black_box(pending.finish_u48(&answer).expect("strings"))
        });
    });
    group.bench_function("chooser's request", |bencher| {
        bencher.iter(|| black_box(chooser.request(&indices, 8).expect("request")));
    });
    let (mut chooser, mut sender) = session();
    group.bench_function("sender's answer", |bencher| {
        let prepare = || chooser.request(&indices, 8).expect("request").0;
        bencher.iter_batched(
            prepare,
            |request| black_box(sender.answer_u48(&request, ROWS, 8, fill).expect("answer")),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn on_one_thread(criterion: &mut Criterion) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1);
    pool.build_global().expect("the first and only pool");
    setup(criterion);
    random(criterion);
    lookups(criterion);
}

criterion_group!(benches, on_one_thread);
criterion_main!(benches);
