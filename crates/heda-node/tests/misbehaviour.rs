//! A trusted peer that breaks the rules of a session: another version, repeats, floods, garbage,
//! a line that is cut in mid-message. The provider ends that session and serves the next one.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use heda_blocks::channel::{ChannelError, WireError};
use heda_node::client::ConnectError;
use heda_node::identity::Identity;
use heda_node::wire::frame::{Content, Frame, Hello, PROTOCOL_VERSION};
use hyper_util::rt::TokioIo;
use prost::bytes::Bytes;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc::{Sender, channel};
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

/// Believes every server: the tests are about what the provider does.
#[derive(Debug)]
struct Gullible;

impl ServerCertVerifier for Gullible {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

fn client_config(identity: &Identity) -> rustls::ClientConfig {
    let folder = tempfile::tempdir().unwrap();
    identity.store("raw", folder.path()).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.path().join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Gullible))
        .with_client_auth_cert(identity.chain().to_vec(), key)
        .unwrap()
}

async fn raw_stream(
    identity: &Identity,
    daemon: &Running,
) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut config = client_config(identity);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tls = tokio_rustls::TlsConnector::from(Arc::new(config));
    let tcp = TcpStream::connect(daemon.address).await.unwrap();
    tls.connect("provider".try_into().unwrap(), tcp)
        .await
        .unwrap()
}

/// A connection for gRPC.
async fn raw_channel(identity: &Identity, daemon: &Running) -> tonic::transport::Channel {
    let mut stream = Some(TokioIo::new(raw_stream(identity, daemon).await));
    let connector = tower_service_fn(move || stream.take());
    let endpoint = tonic::transport::Endpoint::from_static("http://provider");
    endpoint.connect_with_connector(connector).await.unwrap()
}

/// A session whose frames the test writes itself.
async fn raw_session(
    identity: &Identity,
    daemon: &Running,
    first: Frame,
) -> Result<(Sender<Frame>, Streaming<Frame>), Status> {
    let channel = raw_channel(identity, daemon).await;
    let (frames, outgoing) = channel_of(first);
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.unwrap();
    let path = tonic::codegen::http::uri::PathAndQuery::from_static("/heda.v1.Heda/Session");
    let codec = ProstCodec::<Frame, Frame>::default();
    let answer = grpc.streaming(Request::new(outgoing), path, codec).await?;
    Ok((frames, answer.into_inner()))
}

fn channel_of(first: Frame) -> (Sender<Frame>, ReceiverStream<Frame>) {
    let (frames, outgoing) = channel(64);
    frames.try_send(first).unwrap();
    (frames, ReceiverStream::new(outgoing))
}

type Io = TokioIo<tokio_rustls::client::TlsStream<TcpStream>>;

struct Connect<F>(F);

fn tower_service_fn<F: FnMut() -> Option<Io>>(give: F) -> Connect<F> {
    Connect(give)
}

impl<F: FnMut() -> Option<Io>> tonic::codegen::Service<tonic::codegen::http::Uri> for Connect<F> {
    type Response = Io;
    type Error = std::io::Error;
    type Future = std::future::Ready<std::io::Result<Io>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: tonic::codegen::http::Uri) -> Self::Future {
        std::future::ready((self.0)().ok_or_else(|| std::io::Error::other("used")))
    }
}

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
    /// Sends frames after a good greeting; how the provider ended the session.
    fn provoke(&self, frames: Vec<Frame>) -> Option<Status> {
        self.runtime.block_on(async {
            let opened = raw_session(&self.user, &self.daemon, Frame::hello()).await;
            let (sender, mut incoming) = opened.unwrap();
            for frame in frames {
                let _ = sender.send(frame).await;
            }
            let answers = async {
                loop {
                    match incoming.message().await {
                        Ok(Some(_)) => {}
                        Ok(None) => return None,
                        Err(status) => return Some(status),
                    }
                }
            };
            let waited = tokio::time::timeout(Duration::from_secs(15), answers).await;
            waited.expect("the provider did not end the session")
        })
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

    fn failed_sessions(&self) -> bool {
        let text = self.daemon.metrics.render();
        text.contains("{ending=\"peer_failed\"} 1\n")
    }
}

fn chunk(sequence: u64, last: bool, payload: &[u8]) -> Frame {
    Frame::chunk(sequence, last, Bytes::copy_from_slice(payload))
}

#[test]
fn another_version_is_explained_with_both_numbers() {
    let bench = bench();
    let hello = Frame::from(Content::Hello(Hello {
        version: PROTOCOL_VERSION + 1,
        software: "future".into(),
    }));
    let opened = raw_session(&bench.user, &bench.daemon, hello);
    let status = bench.runtime.block_on(opened).err().unwrap();
    assert_eq!(status.code(), tonic::Code::FailedPrecondition);
    let words = status.message();
    assert!(
        words.contains("version 2") && words.contains("version 1"),
        "{words}"
    );
    bench.still_serves();
}

#[test]
fn a_session_without_greeting_is_refused() {
    let bench = bench();
    let opened = raw_session(&bench.user, &bench.daemon, chunk(0, true, b"\x01hi"));
    let status = bench.runtime.block_on(opened).err().unwrap();
    assert_eq!(status.code(), tonic::Code::FailedPrecondition);
    bench.still_serves();
}

#[test]
fn a_replayed_message_ends_the_session() {
    let bench = bench();
    let message = chunk(0, true, b"\x01pay");
    bench.provoke(vec![message.clone(), message]);
    assert!(bench.failed_sessions());
    bench.still_serves();
}

#[test]
fn pieces_out_of_order_end_the_session() {
    let bench = bench();
    bench.provoke(vec![chunk(1, false, b"\x01b"), chunk(0, true, b"a")]);
    assert!(bench.failed_sessions());
    bench.still_serves();
}

#[test]
fn a_second_greeting_ends_the_session() {
    let bench = bench();
    bench.provoke(vec![Frame::hello()]);
    assert!(bench.failed_sessions());
    bench.still_serves();
}

#[test]
fn a_chunk_above_the_limit_ends_the_session() {
    let bench = bench();
    bench.provoke(vec![chunk(0, true, &vec![1; (1 << 20) + 200])]);
    assert!(bench.failed_sessions());
    bench.still_serves();
}

#[test]
fn a_message_without_end_is_cut_at_the_limit() {
    let bench = bench();
    let megabyte = vec![1; 1 << 20];
    let endless = (0..12).map(|i| chunk(i, false, &megabyte)).collect();
    bench.provoke(endless);
    assert!(bench.failed_sessions());
    bench.still_serves();
}

#[test]
fn the_standard_health_service_answers_trusted_peers() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;
    let bench = bench();
    bench.runtime.block_on(async {
        let mut client = HealthClient::new(raw_channel(&bench.user, &bench.daemon).await);
        let mut ask = async |service: &str| {
            let service = service.to_owned();
            client.check(HealthCheckRequest { service }).await
        };
        let answer = ask(heda_node::daemon::service::SERVICE).await.unwrap();
        assert_eq!(answer.into_inner().status(), ServingStatus::Serving);
        let other = ask("heda.v1.Other").await.unwrap_err();
        assert_eq!(other.code(), tonic::Code::NotFound);
    });
    bench.still_serves();
}

#[test]
fn garbage_inside_tls_ends_the_connection_only() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let bench = bench();
    bench.runtime.block_on(async {
        let mut stream = raw_stream(&bench.user, &bench.daemon).await;
        stream.write_all(&[0xa5; 4096]).await.unwrap();
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(15), stream.read_to_end(&mut rest));
        let _ = ended.await.expect("the connection is still open");
    });
    bench.still_serves();
}

#[test]
fn tls_1_2_is_not_spoken() {
    use std::io::{Read, Write};
    let bench = bench();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
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
    assert!(bench.failed_sessions());
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
