//! A trusted peer that breaks the rules of a session: another version, floods, garbage, a line that
//! is cut in mid-message. The provider ends that session and serves the next one.
#![allow(clippy::unwrap_used)]

mod common;

use common::gullible::Gullible;
use common::*;
use heda_blocks::channel::{ChannelError, WireError};
use heda_blocks::stop::{Stop, StopCode};
use heda_job::proposal::PROTOCOL_VERSION;
use heda_node::client::ConnectError;
use heda_node::identity::{Identity, key_exchange};
use heda_node::wire::frame::{Frame, FrameKind, Head, PIECE_LIMIT};
use heda_node::wire::greeting::Greeting;
use rustls::AlertDescription;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

type Raw = tokio_rustls::client::TlsStream<TcpStream>;

fn client_config(identity: &Identity, keys: CryptoProvider) -> rustls::ClientConfig {
    let folder = tempfile::tempdir().unwrap();
    identity.store("raw", folder.path()).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.path().join("key.pem")).unwrap();
    rustls::ClientConfig::builder_with_provider(Arc::new(keys))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Gullible))
        .with_client_auth_cert(identity.chain().to_vec(), key)
        .unwrap()
}

/// A connection after a good handshake.
async fn raw_stream(identity: &Identity, daemon: &Running) -> Raw {
    let mut config = client_config(identity, key_exchange::provider());
    config.alpn_protocols = vec![b"heda".to_vec()];
    let tls = tokio_rustls::TlsConnector::from(Arc::new(config));
    let tcp = TcpStream::connect(daemon.address).await.unwrap();
    tls.connect("provider".try_into().unwrap(), tcp)
        .await
        .unwrap()
}

/// Everything until the provider ends the connection.
async fn all_of(stream: &mut Raw) -> Vec<u8> {
    let mut all = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(15), stream.read_to_end(&mut all));
    let _ = ended.await.expect("the connection is still open");
    all
}

/// Cuts bytes into frames.
fn frames(mut bytes: &[u8]) -> Vec<(FrameKind, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk() {
        let head = Head::from_bytes(*head).unwrap();
        let Some((payload, rest)) = rest.split_at_checked(head.length) else {
            break;
        };
        frames.push((head.kind, payload.to_vec()));
        bytes = rest;
    }
    frames
}

fn raw_frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    [&[kind], &length.to_le_bytes()[..], payload].concat()
}

const PIECE: u8 = 2;
const LAST_PIECE: u8 = 3;

struct Bench {
    user: Identity,
    daemon: Running,
    runtime: tokio::runtime::Runtime,
}

fn bench() -> Bench {
    let user = identity("user");
    Bench {
        daemon: Setup::for_peers(vec![pinned("user", &user)]).start(Arc::new(Echo)),
        user,
        runtime: runtime(),
    }
}

impl Bench {
    /// Sends bytes and returns the frames of the answer, until the provider ends the connection.
    fn answer_to(&self, bytes: &[u8]) -> Vec<(FrameKind, Vec<u8>)> {
        let answer = self.runtime.block_on(async {
            let mut stream = raw_stream(&self.user, &self.daemon).await;
            // It may break the connection while we still send.
            let _ = stream.write_all(bytes).await;
            all_of(&mut stream).await
        });
        frames(&answer)
    }

    /// Sends this after a good greeting, which is answered by one.
    fn provoke(&self, bytes: &[u8]) {
        let answer = self.answer_to(&[Frame::greeting().as_bytes(), bytes].concat());
        let kinds: Vec<FrameKind> = answer.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds.first(), Some(&FrameKind::Greeting));
    }

    /// The stop by which the provider answers these first bytes, and what comes before it.
    fn refusal_of(&self, bytes: &[u8]) -> (Stop, Vec<(FrameKind, Vec<u8>)>) {
        let mut answer = self.answer_to(bytes);
        let (kind, payload) = answer.pop().unwrap();
        assert_eq!(kind, FrameKind::Stop);
        (Stop::from_bytes(&payload), answer)
    }

    /// Whether all is well afterwards.
    fn still_serves(&self) {
        while self.daemon.metrics.running() > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let user = User::new(self.user.clone());
        let mut channel = user.open(&self.daemon.remote()).unwrap();
        echo(&mut channel, b"all well").unwrap();
        echo(&mut channel, b"").unwrap();
    }

    /// Whether one session, and no more, ended in this way.
    fn one_ended_by(&self, ending: &str) -> bool {
        let text = self.daemon.metrics.render();
        text.contains(&format!("{{ending=\"{ending}\"}} 1\n"))
    }
}

#[test]
fn another_version_is_told_which_one_it_needs() {
    let bench = bench();
    for theirs in [0, 1, PROTOCOL_VERSION + 1, u32::MAX] {
        let greeting = Greeting {
            version: theirs,
            software: "other".into(),
        };
        let (stop, before) = bench.refusal_of(&raw_frame(1, &greeting.to_bytes()));
        assert_eq!(stop.code, StopCode::Version);
        let words = format!("needs protocol version 3, the data user speaks version {theirs}");
        assert!(stop.words.contains(&words), "{stop}");
        // The provider's own greeting comes first, for programs that look at nothing else.
        let [(FrameKind::Greeting, ours)] = before.as_slice() else {
            panic!("{before:?}");
        };
        assert_eq!(Greeting::from_bytes(ours).unwrap(), Greeting::ours());
    }
    bench.still_serves();
}

/// What the provider answers to a handshake that offers this protocol and these groups of keys.
fn refusal_of_a_handshake(
    bench: &Bench,
    protocol: &[u8],
    keys: CryptoProvider,
) -> AlertDescription {
    let mut config = client_config(&bench.user, keys);
    config.alpn_protocols = vec![protocol.to_vec()];
    let refused = bench.runtime.block_on(async {
        let tcp = TcpStream::connect(bench.daemon.address).await.unwrap();
        let tls = tokio_rustls::TlsConnector::from(Arc::new(config));
        tls.connect("provider".try_into().unwrap(), tcp).await
    });
    let error = refused.unwrap_err();
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::AlertReceived(alert)) => *alert,
        _ => panic!("{error}"),
    }
}

#[test]
fn a_data_user_of_version_0_1_fails_in_the_handshake() {
    let bench = bench();
    // It knows X25519 only, and offers gRPC.
    let alert = refusal_of_a_handshake(&bench, b"h2", ring::default_provider());
    assert_eq!(alert, AlertDescription::HandshakeFailure);
    let alert = refusal_of_a_handshake(&bench, b"h2", key_exchange::provider());
    assert_eq!(alert, AlertDescription::NoApplicationProtocol);
    bench.still_serves();
}

/// No conversation can be recorded now and opened by a quantum computer later.
#[test]
fn a_data_user_without_ml_kem_fails_in_the_handshake() {
    let bench = bench();
    let alert = refusal_of_a_handshake(&bench, b"heda", ring::default_provider());
    assert_eq!(alert, AlertDescription::HandshakeFailure);
    bench.still_serves();
}

/// Why our program does not talk to a provider that has these groups of keys and says that it
/// speaks `protocol`.
fn refusal_of_another_provider(protocol: &[u8], keys: CryptoProvider) -> ConnectError {
    let (user, old) = (identity("user"), identity("provider"));
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    old.store("old", folder.path()).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.path().join("key.pem")).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(keys))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(old.chain().to_vec(), key)
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
    let listener = listener.unwrap();
    let remote = heda_node::client::RemoteProvider {
        address: listener.local_addr().unwrap().to_string(),
        peer: pinned("provider", &old),
    };
    runtime.spawn(async move {
        let (tcp, _) = listener.accept().await.unwrap();
        let accepted = tokio_rustls::TlsAcceptor::from(Arc::new(config)).accept(tcp);
        if let Ok(stream) = accepted.await {
            // Until the peer is gone.
            let (mut reader, _writer) = tokio::io::split(stream);
            let _ = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
        }
    });
    User::new(user).open(&remote).unwrap_err()
}

#[test]
fn a_provider_without_ml_kem_is_refused_and_must_update() {
    // Version 0.1 said in the handshake that it speaks gRPC; a recorded conversation of either
    // could be opened by a quantum computer later.
    for protocol in [&b"h2"[..], b"heda"] {
        let error = refusal_of_another_provider(protocol, ring::default_provider());
        assert!(matches!(error, ConnectError::Greeting { .. }), "{error}");
        let words = error.to_string();
        assert!(
            words.contains("X25519MLKEM768") && words.contains("protocol version 3"),
            "{words}"
        );
        assert!(words.ends_with("the provider must update"), "{words}");
        assert!(!error.is_passing());
    }
}

#[test]
fn a_server_of_another_protocol_is_refused() {
    let error = refusal_of_another_provider(b"h2", key_exchange::provider());
    assert!(matches!(error, ConnectError::Greeting { .. }), "{error}");
    let words = error.to_string();
    assert!(
        words.contains("does not speak the protocol of Heda"),
        "{words}"
    );
    assert!(!error.is_passing());
}

#[test]
fn a_session_without_greeting_is_refused() {
    let bench = bench();
    for first in [raw_frame(LAST_PIECE, b"\x01hi"), raw_frame(1, b"abc")] {
        let (stop, _) = bench.refusal_of(&first);
        assert_eq!(stop.code, StopCode::Protocol);
    }
    bench.still_serves();
}

#[test]
fn a_second_greeting_ends_the_session() {
    let bench = bench();
    bench.provoke(Frame::greeting().as_bytes());
    assert!(bench.one_ended_by("breach"));
    bench.still_serves();
}

#[test]
fn a_piece_above_the_limit_ends_the_session() {
    let bench = bench();
    bench.provoke(&raw_frame(LAST_PIECE, &vec![1; PIECE_LIMIT + 1]));
    assert!(bench.one_ended_by("breach"));
    bench.still_serves();
}

#[test]
fn a_kind_that_does_not_exist_ends_the_session() {
    let bench = bench();
    bench.provoke(&raw_frame(77, b"x"));
    assert!(bench.one_ended_by("breach"));
    bench.still_serves();
}

#[test]
fn a_message_without_end_is_cut_at_the_limit() {
    let bench = bench();
    bench.provoke(&raw_frame(PIECE, &vec![1; 1 << 20]).repeat(12));
    assert!(bench.one_ended_by("breach"));
    bench.still_serves();
}

#[test]
fn whoever_broke_the_protocol_waits_and_nobody_else() {
    let (user, other) = (identity("user"), identity("other"));
    let mut setup = Setup::for_peers(vec![pinned("user", &user), pinned("other", &other)]);
    setup.sessions.breach_pause = Duration::from_secs(3600);
    let bench = Bench {
        daemon: setup.start(Arc::new(Echo)),
        user: user.clone(),
        runtime: runtime(),
    };
    bench.provoke(&raw_frame(77, b"x"));
    while bench.daemon.metrics.running() > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let error = User::new(user).open(&bench.daemon.remote()).unwrap_err();
    assert!(matches!(error, ConnectError::Busy { .. }), "{error}");
    let words =
        "an earlier session of this data user broke the protocol; it may come back in 3600 s";
    assert!(error.to_string().contains(words), "{error}");
    let text = bench.daemon.metrics.render();
    assert!(
        text.contains("heda_sessions_refused_paused_total 1\n"),
        "{text}"
    );
    let other = User::new(other);
    let mut channel = other.open(&bench.daemon.remote()).unwrap();
    echo(&mut channel, b"all well").unwrap();
}

/// A peer that goes on pouring after its session has ended is read no further than what may be under
/// way: it would keep a processor busy.
#[test]
fn whoever_pours_after_the_end_is_cut_off() {
    let bench = bench();
    let frame = raw_frame(LAST_PIECE, &vec![1; PIECE_LIMIT]);
    let frames = bench.runtime.block_on(async {
        let mut stream = raw_stream(&bench.user, &bench.daemon).await;
        let greeting = Frame::greeting();
        stream.write_all(greeting.as_bytes()).await.unwrap();
        // A message of another step: the session ends, the frames are sound.
        let other = raw_frame(LAST_PIECE, &[BYE]);
        stream.write_all(&other).await.unwrap();
        let mut frames = 0;
        while frames < 512 && stream.write_all(&frame).await.is_ok() {
            frames += 1;
        }
        frames
    });
    assert!(frames < 128, "{frames} megabytes were read after the end");
    bench.still_serves();
}

#[test]
fn garbage_inside_tls_ends_the_connection_only() {
    let bench = bench();
    bench.runtime.block_on(async {
        let mut stream = raw_stream(&bench.user, &bench.daemon).await;
        stream.write_all(&[0xa5; 4096]).await.unwrap();
        all_of(&mut stream).await;
    });
    bench.still_serves();
}

#[test]
fn tls_1_2_is_not_spoken() {
    use std::io::{Read, Write};
    let bench = bench();
    let provider = key_exchange::provider();
    assert!(
        provider
            .cipher_suites
            .iter()
            .all(|suite| suite.tls13().is_some())
    );
    // A TLS 1.2 greeting by hand, with one old suite and no supported_versions extension.
    let mut hello = vec![0x16, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3];
    hello.extend([7; 32]);
    hello.extend([0, 0, 2, 0xc0, 0x2f, 1, 0]);
    let mut tcp = std::net::TcpStream::connect(bench.daemon.address).unwrap();
    tcp.write_all(&hello).unwrap();
    let mut answer = Vec::new();
    let _ = tcp.read_to_end(&mut answer);
    assert_eq!(answer.first(), Some(&0x15), "an alert, not a handshake");
    bench.still_serves();
}

#[test]
fn a_line_cut_in_mid_message_is_noticed_on_both_sides() {
    let bench = bench();
    let proxy = Proxy::start(bench.daemon.address, 3_000_000);
    let mut remote = bench.daemon.remote();
    remote.address = proxy.address.to_string();
    let user = User::new(bench.user.clone());
    let mut channel = user.open(&remote).unwrap();
    let outcome = (0..10).try_for_each(|_| echo(&mut channel, &vec![3; 2_000_000]));
    let error = outcome.unwrap_err();
    assert!(
        matches!(error, ChannelError::Wire(WireError::Closed(_))),
        "{error}"
    );
    bench.still_serves();
    assert!(bench.one_ended_by("peer_failed"));
}

#[test]
fn a_provider_that_is_not_there_yet_is_tried_again() {
    let user = identity("user");
    let daemon = Setup::for_peers(vec![pinned("user", &user)]).start(Arc::new(Echo));
    let proxy = Proxy::reserve(daemon.address);
    let mut remote = daemon.remote();
    remote.address = proxy.address.to_string();
    let user = User::new(user);
    let error = user.open(&remote).unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    let mut proxy = Some(proxy);
    let opened = user.runtime.block_on(user.connector.open_patiently(
        &remote,
        Duration::from_secs(60),
        |_, _| {
            if let Some(reserved) = proxy.take() {
                reserved.open();
            }
        },
    ));
    opened.unwrap();
}
