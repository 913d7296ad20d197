//! Sessions over real TLS sockets: what works, who is refused, and every way a peer can misbehave.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use heda_blocks::channel::{ChannelError, WireError};
use heda_blocks::stop::{Stop, StopCode};
use heda_node::client::ConnectError;
use heda_node::daemon::listener::ConnectionLimits;
use heda_node::daemon::session::SessionLimits;
use heda_node::identity::trust::{OwnCertificate, Recognition, TrustedPeer};
use heda_node::system::clock::{ManualClock, Timestamp};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

fn echo_daemon(user: &heda_node::identity::Identity) -> Running {
    Setup::for_peers(vec![pinned("user", user)]).start(Arc::new(Echo))
}

#[test]
fn messages_of_all_sizes_go_there_and_back() {
    let user = identity("user");
    let mut daemon = echo_daemon(&user);
    let user = User::new(user);
    let mut channel = user.open(&daemon.remote()).unwrap();
    for length in [1, 1000, (1 << 20) - 1, 1 << 20, 5_000_000] {
        let message: Vec<u8> = (0..length).map(|i: usize| (i * 31 % 251) as u8).collect();
        echo(&mut channel, &message).unwrap();
    }
    echo(&mut channel, b"").unwrap();
    drop(channel);
    daemon.stop().unwrap();
    let text = daemon.metrics.render();
    assert!(
        text.contains("heda_sessions_ended_total{ending=\"finished\"} 1\n"),
        "{text}"
    );
}

#[test]
fn both_sides_may_send_at_the_same_time() {
    // Each side sends 6 MB before it reads: a wire without an inbox would be stuck here.
    let user = identity("user");
    let mut daemon = echo_daemon(&user);
    let user = User::new(user);
    let mut channel = user.open(&daemon.remote()).unwrap();
    let message = vec![5; 3_000_000];
    for _ in 0..2 {
        channel.send(ECHO, &message).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(channel.receive(ECHO, LIMIT).unwrap(), message);
    }
    echo(&mut channel, b"").unwrap();
    drop(channel);
    daemon.stop().unwrap();
}

#[test]
fn two_data_users_at_once() {
    let users = ["one", "two"].map(identity);
    let peers = users.iter().map(|u| pinned("user", u)).collect();
    let mut daemon = Setup::for_peers(peers).start(Arc::new(Echo));
    let users = users.map(User::new);
    let mut channels = [0, 1].map(|i: usize| users[i].open(&daemon.remote()).unwrap());
    for round in 0..5u8 {
        for (who, channel) in channels.iter_mut().enumerate() {
            echo(channel, &vec![round * 2 + who as u8 + 1; 100_000]).unwrap();
        }
    }
    channels.iter_mut().for_each(|c| echo(c, b"").unwrap());
    drop(channels);
    daemon.stop().unwrap();
}

#[test]
fn a_stranger_is_refused_in_the_handshake() {
    let daemon = echo_daemon(&identity("user"));
    let stranger = User::new(identity("stranger"));
    let error = stranger.open(&daemon.remote()).unwrap_err();
    assert!(matches!(error, ConnectError::NotAllowed { .. }), "{error}");
    let own = stranger.connector.identity.fingerprint().to_string();
    assert!(error.to_string().contains(&own), "{error}");
    let text = daemon.metrics.render();
    assert!(text.contains("heda_connections_total 0\n"), "{text}");
    assert!(text.contains("heda_handshakes_refused_total 1\n"), "{text}");
}

#[test]
fn a_client_without_certificate_is_refused() {
    let daemon = echo_daemon(&identity("user"));
    let roots = rustls::RootCertStore::empty();
    let provider = Arc::new(heda_node::identity::key_exchange::provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "provider".try_into().unwrap();
    let mut tls = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut tcp = TcpStream::connect(daemon.address).unwrap();
    let mut stream = rustls::Stream::new(&mut tls, &mut tcp);
    let outcome = stream.write(b"PRI").and_then(|_| stream.read(&mut [0; 9]));
    assert!(outcome.is_err());
    assert_eq!(daemon.metrics.running(), 0);
}

#[test]
fn somebody_else_at_the_address_is_noticed() {
    let user = identity("user");
    let daemon = echo_daemon(&user);
    let mut remote = daemon.remote();
    remote.peer = pinned("provider", &identity("another"));
    let error = User::new(user).open(&remote).unwrap_err();
    assert!(matches!(error, ConnectError::NotThePeer { .. }), "{error}");
}

#[test]
fn certificates_out_of_their_dates_are_refused_on_both_sides() {
    let day = Duration::from_secs(86_400);
    let past = Timestamp(now().0 - 10 * 86_400);
    let future = Timestamp(now().0 + 10 * 86_400);
    for start in [past, future] {
        let bad_user = identity_from("user", start, day);
        let daemon = echo_daemon(&bad_user);
        let error = User::new(bad_user).open(&daemon.remote()).unwrap_err();
        assert!(matches!(error, ConnectError::NotAllowed { .. }), "{error}");

        let user = identity("user");
        let mut setup = Setup::for_peers(vec![pinned("user", &user)]);
        setup.identity = identity_from("provider", start, day);
        let daemon = setup.start(Arc::new(Echo));
        let error = User::new(user).open(&daemon.remote()).unwrap_err();
        assert!(matches!(error, ConnectError::NotThePeer { .. }), "{error}");
        assert!(error.to_string().contains("not valid"), "{error}");
    }
}

#[test]
fn a_certificate_expires_while_the_daemon_runs() {
    let user = identity("user");
    let clock = Arc::new(ManualClock::at(now()));
    let mut setup = Setup::for_peers(vec![pinned("user", &user)]);
    setup.clock = Arc::clone(&clock) as _;
    let daemon = setup.start(Arc::new(Echo));
    let user = User::new(user);
    let mut channel = user.open(&daemon.remote()).unwrap();
    echo(&mut channel, b"").unwrap();
    clock.set(Timestamp(now().0 + 2 * YEAR.as_secs()));
    let error = user.open(&daemon.remote()).unwrap_err();
    assert!(matches!(error, ConnectError::NotAllowed { .. }), "{error}");
}

/// A certificate of an authority for a name.
mod authority {
    use super::*;
    use heda_node::identity::Identity;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

    pub(crate) fn authority() -> (CertificateParams, KeyPair) {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        (params, KeyPair::generate().unwrap())
    }

    /// An identity whose certificate the authority signed, as an operator would install it.
    pub(crate) fn certified(name: &str, ca: &(CertificateParams, KeyPair)) -> Identity {
        let folder = tempfile::tempdir().unwrap();
        identity(name).store(name, folder.path()).unwrap();
        let key = std::fs::read_to_string(folder.path().join("key.pem")).unwrap();
        let key = KeyPair::from_pem(&key).unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let issuer = Issuer::from_params(&ca.0, &ca.1);
        let certificate = params.signed_by(&key, &issuer).unwrap();
        std::fs::write(folder.path().join("certificate.pem"), certificate.pem()).unwrap();
        Identity::load(folder.path()).unwrap()
    }

    pub(crate) fn trusted(name: &str, ca: &(CertificateParams, KeyPair)) -> TrustedPeer {
        TrustedPeer {
            label: name.into(),
            recognition: Recognition::Certified {
                authority: ca.0.self_signed(&ca.1).unwrap().der().clone(),
                name: name.into(),
            },
        }
    }
}

#[test]
fn a_certificate_of_an_authority_is_told_from_a_self_signed_one() {
    use authority::{authority, certified};
    let own = OwnCertificate::of(&certified("provider.example", &authority())).unwrap();
    assert!(!own.self_signed && own.begins < own.ends, "{own:?}");
    let own = OwnCertificate::of(&identity("provider.example")).unwrap();
    assert!(own.self_signed && own.begins < own.ends, "{own:?}");
}

#[test]
fn a_private_authority_vouches_for_names() {
    use authority::{authority, certified, trusted};
    let (ca, other_ca) = (authority(), authority());
    let mut setup = Setup::for_peers(vec![trusted("user.example", &ca)]);
    setup.identity = certified("provider.example", &ca);
    let daemon = setup.start(Arc::new(Echo));
    let mut remote = daemon.remote();
    remote.peer = trusted("provider.example", &ca);

    let user = User::new(certified("user.example", &ca));
    echo(&mut user.open(&remote).unwrap(), b"").unwrap();
    for intruder in [
        certified("intruder.example", &ca),
        certified("user.example", &other_ca),
        identity("user.example"),
    ] {
        let error = User::new(intruder).open(&remote).unwrap_err();
        assert!(matches!(error, ConnectError::NotAllowed { .. }), "{error}");
    }
    remote.peer = trusted("provider.example", &other_ca);
    let error = user.open(&remote).unwrap_err();
    assert!(matches!(error, ConnectError::NotThePeer { .. }), "{error}");
}

#[test]
fn garbage_in_place_of_tls_ends_the_connection_only() {
    let user = identity("user");
    let daemon = echo_daemon(&user);
    let mut tcp = TcpStream::connect(daemon.address).unwrap();
    tcp.write_all(&[0x5a; 5000]).unwrap();
    let mut rest = Vec::new();
    let _ = tcp.read_to_end(&mut rest);
    let user = User::new(user);
    let mut channel = user.open(&daemon.remote()).unwrap();
    echo(&mut channel, b"").unwrap();
}

#[test]
fn idle_strangers_time_out_and_keep_nobody_out() {
    let user = identity("user");
    let mut setup = Setup::for_peers(vec![pinned("user", &user)]);
    setup.connections = ConnectionLimits {
        handshake_patience: Duration::from_millis(1500),
        ..ConnectionLimits::default()
    };
    let daemon = setup.start(Arc::new(Echo));
    let mut idle: Vec<_> = (0..50)
        .map(|_| TcpStream::connect(daemon.address).unwrap())
        .collect();
    let user = User::new(user);
    let mut channel = user.open(&daemon.remote()).unwrap();
    for _ in 0..20 {
        echo(&mut channel, &[1; 100_000]).unwrap();
    }
    for stranger in &mut idle {
        let patience = Some(Duration::from_secs(30));
        stranger.set_read_timeout(patience).unwrap();
        let closed =
            matches!(stranger.read(&mut [0; 1]), Ok(0)) || stranger.take_error().unwrap().is_some();
        assert!(closed, "an idle connection is still open");
    }
    echo(&mut channel, b"").unwrap();
    let text = daemon.metrics.render();
    assert!(
        text.contains("heda_handshakes_refused_total 50\n"),
        "{text}"
    );
}

#[test]
fn more_idle_strangers_than_there_is_room_for_make_room_for_a_peer() {
    let user = identity("user");
    let mut setup = Setup::for_peers(vec![pinned("user", &user)]);
    setup.connections.handshake_patience = Duration::from_secs(600);
    setup.connections.strangers_per_address = 3;
    let daemon = setup.start(Arc::new(Echo));
    let mut idle: Vec<_> = (0..40)
        .map(|_| TcpStream::connect(daemon.address).unwrap())
        .collect();
    let user = User::new(user);
    let mut channel = user.open(&daemon.remote()).unwrap();
    echo(&mut channel, b"").unwrap();
    // All but the last three were sent away at once, and not by their patience.
    for stranger in &mut idle[..37] {
        let patience = Some(Duration::from_secs(30));
        stranger.set_read_timeout(patience).unwrap();
        assert!(!matches!(stranger.read(&mut [0; 1]), Ok(1..)));
    }
    let text = daemon.metrics.render();
    assert!(text.contains("heda_strangers_sent_away_total 3"), "{text}");
}

#[test]
fn idle_sessions_and_strangers_do_not_hold_up_the_end() {
    let user = identity("user");
    let mut setup = Setup::for_peers(vec![pinned("user", &user)]);
    setup.connections.handshake_patience = Duration::from_secs(600);
    setup.stop_grace = Duration::from_secs(600);
    let mut daemon = setup.start(Arc::new(Echo));
    let _stranger = TcpStream::connect(daemon.address).unwrap();
    let user = User::new(user);
    let mut channel = user.open(&daemon.remote()).unwrap();
    echo(&mut channel, b"work").unwrap();
    // Ends without anyone's patience, or this test would take ten minutes.
    daemon.stop().unwrap();
    let told = channel.receive(ECHO, 9).unwrap_err();
    assert!(
        matches!(&told, ChannelError::PeerStopped(stop) if stop.code == StopCode::Stopping),
        "{told}"
    );
    let text = daemon.metrics.render();
    assert!(text.contains("{ending=\"stopped\"} 1\n"), "{text}");
}

#[test]
fn a_silent_peer_times_out_on_both_sides() {
    let user = identity("user");
    let mut setup = Setup::for_peers(vec![pinned("user", &user)]);
    setup.sessions.wire = wire_limits(Duration::from_millis(300));
    let daemon = setup.start(Arc::new(Echo));
    let mut user = User::new(user);
    user.connector.limits = wire_limits(Duration::from_millis(300));
    let mut channel = user.open(&daemon.remote()).unwrap();
    // The provider waits for us, we wait for the provider: both give up, whoever is first.
    let error = channel.receive(ECHO, 9).unwrap_err();
    assert!(matches!(error, ChannelError::Wire(_)), "{error}");
    drop(channel);
    while daemon.metrics.running() > 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = daemon.metrics.render();
    assert!(text.contains("{ending=\"peer_failed\"} 1\n"), "{text}");
}

#[test]
fn a_message_that_is_too_long_ends_the_session() {
    let user = identity("user");
    let daemon = echo_daemon(&user);
    let user = User::new(user);
    let mut channel = user.open(&daemon.remote()).unwrap();
    let sent = channel.send(ECHO, &vec![0; LIMIT + 1]);
    let error = sent
        .and_then(|()| channel.receive(ECHO, LIMIT).map(|_| ()))
        .unwrap_err();
    let ended = matches!(
        error,
        ChannelError::Wire(WireError::Closed(_)) | ChannelError::PeerStopped(_)
    );
    assert!(ended, "{error}");
}

#[test]
fn a_wrong_message_is_answered_with_the_reason() {
    let user = identity("user");
    let daemon = echo_daemon(&user);
    let user = User::new(user);
    let mut channel = user.open(&daemon.remote()).unwrap();
    channel.send(77, b"x").unwrap();
    let error = channel.receive(ECHO, LIMIT).unwrap_err();
    assert!(error.to_string().contains("message 77"), "{error}");
}

#[test]
fn a_refusal_arrives_in_words() {
    let user = identity("user");
    let peers = vec![pinned("university", &user)];
    let mut daemon = Setup::for_peers(peers).start(Arc::new(Refuser));
    let user = User::new(user);
    let mut channel = user.open(&daemon.remote()).unwrap();
    let error = channel.receive(ECHO, LIMIT).unwrap_err();
    let words =
        ChannelError::PeerStopped(Stop::new(StopCode::Refused, "university asks for too much"));
    assert_eq!(error, words);
    drop(channel);
    daemon.stop().unwrap();
    let text = daemon.metrics.render();
    assert!(text.contains("{ending=\"refused\"} 1\n"), "{text}");
}

#[test]
fn sessions_are_limited_in_all_and_by_peer() {
    let users = ["one", "two", "three"].map(identity);
    let peers = users.iter().map(|u| pinned("user", u)).collect();
    let mut setup = Setup::for_peers(peers);
    setup.sessions = SessionLimits {
        sessions: 2,
        sessions_per_peer: 1,
        ..setup.sessions
    };
    let daemon = setup.start(Arc::new(Echo));
    let users = users.map(User::new);
    let mut first = users[0].open(&daemon.remote()).unwrap();
    let again = users[0].open(&daemon.remote()).unwrap_err();
    assert!(matches!(again, ConnectError::Busy { .. }), "{again}");
    let _second = users[1].open(&daemon.remote()).unwrap();
    let third = users[2].open(&daemon.remote()).unwrap_err();
    assert!(matches!(third, ConnectError::Busy { .. }), "{third}");
    echo(&mut first, b"").unwrap();
    drop(first);
    let remote = daemon.remote();
    let patience = Duration::from_secs(30);
    let waited = users[2]
        .connector
        .open_patiently(&remote, patience, |_, _| {});
    users[2].runtime.block_on(waited).unwrap();
}

#[test]
fn the_wish_to_stop_lets_sessions_reach_a_good_point() {
    let user = identity("user");
    let mut daemon = echo_daemon(&user);
    let user = User::new(user);
    let mut channel = user.open(&daemon.remote()).unwrap();
    echo(&mut channel, b"x").unwrap();
    daemon.switch.stop();
    channel.send(ECHO, b"y").unwrap();
    let error = channel.receive(ECHO, LIMIT).unwrap_err();
    assert!(error.to_string().contains("resume the job"), "{error}");
    drop(channel);
    daemon.stop().unwrap();
    let refused = user.open(&daemon.remote()).unwrap_err();
    assert!(refused.is_passing(), "{refused}");
}

#[test]
fn a_session_that_does_not_end_is_abandoned_after_the_grace() {
    let user = identity("user");
    let mut setup = Setup::for_peers(vec![pinned("user", &user)]);
    setup.stop_grace = Duration::from_millis(100);
    let mut daemon = setup.start(Arc::new(Echo));
    let user = User::new(user);
    let mut channel = user.open(&daemon.remote()).unwrap();
    echo(&mut channel, b"x").unwrap();
    let ended = daemon.stop();
    assert!(ended.unwrap_err().to_string().contains("1 sessions"));
}

#[test]
fn metrics_are_served_to_prometheus_and_nothing_else() {
    let daemon = echo_daemon(&identity("user"));
    let ask = |request: &str| {
        let mut tcp = TcpStream::connect(daemon.metrics_address).unwrap();
        tcp.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("\r\n\r\n# HELP heda_connections_total"),
        "{answer}"
    );
    let other = ask("POST /stop HTTP/1.1\r\n\r\n");
    assert!(other.starts_with("HTTP/1.0 404"), "{other}");
}

#[test]
fn a_monitor_is_told_whether_the_daemon_serves_or_stops() {
    let user = identity("user");
    let mut daemon = echo_daemon(&user);
    let ask = |daemon: &Running| {
        let mut tcp = TcpStream::connect(daemon.metrics_address).unwrap();
        tcp.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = ask(&daemon);
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nserving\n"), "{answer}");
    // A session that goes on keeps the daemon from ending.
    let user = User::new(user);
    let mut channel = user.open(&daemon.remote()).unwrap();
    echo(&mut channel, b"x").unwrap();
    daemon.switch.stop();
    let answer = ask(&daemon);
    assert!(answer.starts_with("HTTP/1.0 503 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nstopping\n"), "{answer}");
    drop(channel);
    daemon.stop().unwrap();
}
