//! A wire whose other end the test writes and reads by hand.

use super::*;
use crate::wire::frame::{HEAD_BYTES, Head};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::runtime::Runtime;

struct Bench {
    runtime: Runtime,
    waiting: Arc<AtomicU64>,
    wire: NetworkWire,
    line: Option<DuplexStream>,
}

fn bench(patience_ms: u64, line_bytes: usize) -> Bench {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let (line, ours) = tokio::io::duplex(line_bytes);
    let limits = WireLimits {
        patience: Duration::from_millis(patience_ms),
        inbox_bytes: 4 << 20,
    };
    let entered = runtime.enter();
    let around = Surroundings::default();
    let waiting = Arc::clone(&around.waiting);
    let wire = NetworkWire::new(ours, limits, around);
    drop(entered);
    Bench {
        runtime,
        waiting,
        wire,
        line: Some(line),
    }
}

impl Bench {
    fn new() -> Self {
        bench(5000, 8 << 20)
    }

    fn feed(&mut self, bytes: &[u8]) {
        let line = self.line.as_mut().unwrap();
        self.runtime.block_on(line.write_all(bytes)).unwrap();
    }

    fn piece(&mut self, last: bool, payload: &[u8]) {
        self.feed(Frame::piece(last, &[], payload).as_bytes());
    }

    /// The next frame that the wire sent.
    fn sent(&mut self) -> Vec<u8> {
        let line = self.line.as_mut().unwrap();
        self.runtime.block_on(async {
            let mut frame = vec![0; HEAD_BYTES];
            line.read_exact(&mut frame).await.unwrap();
            let head = Head::from_bytes(frame.as_slice().try_into().unwrap()).unwrap();
            frame.resize(HEAD_BYTES + head.length, 0);
            line.read_exact(&mut frame[HEAD_BYTES..]).await.unwrap();
            frame
        })
    }
}

#[test]
fn messages_are_split_and_joined() {
    for length in [1, 2, PIECE_SENT, PIECE_SENT + 1, 3 * PIECE_SENT] {
        let message: Vec<u8> = (0..length).map(|i| (i / 1000) as u8).collect();
        for tagged in [false, true] {
            let mut bench = Bench::new();
            let sent = match tagged {
                false => bench.wire.send(message.clone()),
                true => bench.wire.send_tagged(message[0], &message[1..]),
            };
            sent.unwrap();
            for _ in 0..length.div_ceil(PIECE_SENT) {
                let frame = bench.sent();
                assert!(frame.len() <= 128 << 10);
                bench.feed(&frame);
            }
            assert_eq!(bench.wire.receive(length).unwrap(), message);
        }
    }
}

#[test]
fn memory_is_used_again_and_nothing_of_it_is_seen() {
    let mut bench = Bench::new();
    bench.piece(false, &[9; 100]);
    bench.piece(true, &[9; 100]);
    let (_, body) = bench.wire.receive_tagged(1000).unwrap();
    let place = body.as_ptr();
    bench.wire.recycle(body);
    bench.piece(false, &[1; 30]);
    bench.piece(true, &[2; 20]);
    let (tag, body) = bench.wire.receive_tagged(1000).unwrap();
    assert_eq!((tag, body.as_ptr()), (Some(1), place));
    assert_eq!(body, [[1; 29].as_slice(), &[2; 20]].concat());
}

#[test]
fn a_message_is_refused_while_it_grows_too_long() {
    let mut bench = Bench::new();
    bench.piece(false, &[1; 60]);
    bench.piece(false, &[1; 60]);
    let too_long = WireError::TooLong {
        got: 120,
        limit: 100,
    };
    assert_eq!(bench.wire.receive(100), Err(too_long));
}

#[test]
fn frames_that_are_no_pieces_and_endless_empty_pieces_are_refused() {
    let over_the_limit = [3, 1, 0, 16, 0];
    for bytes in [
        Frame::greeting().as_bytes(),
        Frame::piece(false, &[], &[]).as_bytes(),
        &[9, 0, 0, 0, 0],
        &over_the_limit,
    ] {
        let mut bench = Bench::new();
        bench.feed(bytes);
        let outcome = bench.wire.receive(9);
        assert!(
            matches!(outcome, Err(WireError::Malformed(_))),
            "{outcome:?}"
        );
    }
}

#[test]
fn signs_of_life_are_no_messages() {
    let mut bench = Bench::new();
    bench.piece(false, b"ta");
    bench.feed(Frame::alive().as_bytes());
    bench.piece(true, b"g");
    assert_eq!(bench.wire.receive(9).unwrap(), b"tag");
}

#[test]
fn silence_times_out_in_both_directions() {
    let mut bench = bench(50, 1 << 10);
    assert!(matches!(bench.wire.receive(9), Err(WireError::TimedOut(_))));
    let message = vec![0; (OUTBOX_FRAMES + 2) * PIECE_SENT];
    assert!(matches!(
        bench.wire.send(message),
        Err(WireError::TimedOut(_))
    ));
}

#[test]
fn an_end_is_told_apart_from_a_break() {
    for (fed, words) in [
        (
            Frame::piece(false, &[], b"half").as_bytes(),
            "ended the session",
        ),
        (&[3, 9, 0, 0, 0, b'h'][..], "in the middle of a frame"),
        (&[3, 9][..], "in the middle of a frame"),
    ] {
        let mut bench = Bench::new();
        bench.feed(fed);
        bench.line = None;
        let Err(WireError::Closed(cause)) = bench.wire.receive(9) else {
            panic!("a message out of {fed:?}");
        };
        assert!(cause.contains(words), "{cause}");
    }
}

#[test]
fn the_inbox_is_bounded_and_never_stuck() {
    let mut bench = bench(5000, 1 << 20);
    let mut line = bench.line.take().unwrap();
    let feeder = bench.runtime.spawn(async move {
        let frame = Frame::piece(true, &[], &vec![0; PIECE_LIMIT]);
        for _ in 0..32 {
            line.write_all(frame.as_bytes()).await.unwrap();
        }
        line
    });
    std::thread::sleep(Duration::from_millis(200));
    assert!(!feeder.is_finished(), "32 MiB fit into an inbox of 4 MiB");
    for _ in 0..32 {
        assert_eq!(bench.wire.receive(PIECE_LIMIT).unwrap().len(), PIECE_LIMIT);
    }
    bench.runtime.block_on(feeder).unwrap();
}

/// A peer that takes nothing would otherwise hold its connection for as long as it likes.
#[test]
fn what_nobody_reads_is_given_up_some_time_after_the_end() {
    let clock = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    clock.unwrap().block_on(async {
        let (_line, ours) = tokio::io::duplex(1 << 10);
        let mut wire = NetworkWire::new(ours, WireLimits::default(), Surroundings::default());
        wire.send(vec![7; 100 << 10]).unwrap();
        let carrier = wire.take_carrier().unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(
            !carrier.is_finished(),
            "the line was given up in mid-session"
        );
        drop(wire);
        let ended = tokio::time::timeout(Duration::from_secs(11), carrier).await;
        assert!(ended.is_ok(), "the line is still open");
    });
}

#[test]
fn many_small_frames_cost_what_they_take_and_it_is_given_back() {
    // Empty messages and messages of two bytes, from a peer that never lets the job read.
    for payload in [&[][..], &[7, 7]] {
        let mut bench = bench(5000, 16 << 10);
        let mut line = bench.line.take().unwrap();
        let frame = Frame::piece(true, &[], payload);
        let frames = frame.as_bytes().repeat(200_000);
        let feeder = bench
            .runtime
            .spawn(async move { line.write_all(&frames).await });
        std::thread::sleep(Duration::from_millis(300));
        assert!(!feeder.is_finished(), "200 000 frames fit into the inbox");
        let queued = bench.wire.inbox.len();
        assert!(queued <= (4 << 20) / FRAME_COST, "{queued} frames wait");
        assert!(bench.waiting.load(Relaxed) <= 4 << 20);
        assert!(bench.waiting.load(Relaxed) >= (queued * FRAME_COST) as u64);
        feeder.abort();
        drop(bench.wire);
        assert_eq!(bench.waiting.load(Relaxed), 0);
    }
}

#[test]
fn a_silent_peer_is_not_waited_for_after_the_wish_to_stop() {
    let mut bench = bench(600_000, 1 << 10);
    let (switch, stop) = crate::system::stop::StopSwitch::new();
    bench.wire.stop = Some(stop);
    bench.piece(true, b"said before");
    switch.stop();
    assert_eq!(bench.wire.receive(99).unwrap(), b"said before");
    let silent = bench.wire.receive(99);
    assert_eq!(silent, Err(WireError::TimedOut(SILENCE_AT_STOP)));
}

#[test]
fn what_was_sent_last_arrives_although_the_wire_is_gone() {
    let mut bench = Bench::new();
    bench.wire.send(b"bye".to_vec()).unwrap();
    let mut line = bench.line.take().unwrap();
    let reader = bench.runtime.spawn(async move {
        let mut all = Vec::new();
        line.read_to_end(&mut all).await.unwrap();
        all
    });
    drop(bench.wire);
    let all = bench.runtime.block_on(reader).unwrap();
    assert_eq!(all, Frame::piece(true, &[], b"bye").as_bytes());
}
