//! Parties on loopback, with identities of their own.
#![allow(
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "every test file uses a part of these helpers"
)]

pub mod gullible;

use heda_blocks::channel::{Channel, ChannelError};
use heda_crypto::random::Randomness;
use heda_node::client::{ConnectError, Connector, RemoteProvider};
use heda_node::config::ProviderConfig;
use heda_node::daemon::listener::ConnectionLimits;
use heda_node::daemon::metrics::{Ending, Metrics};
use heda_node::daemon::session::{SessionError, SessionHandler, SessionLimits};
use heda_node::daemon::{Daemon, DaemonError, DaemonSettings};
use heda_node::guard::ProviderService;
use heda_node::guard::ledger::Ledger;
use heda_node::guard::policy::Policy;
use heda_node::guard::provider_data::ProviderData;
use heda_node::identity::Identity;
use heda_node::identity::trust::{PeerIdentity, Recognition, Trust, TrustedPeer};
use heda_node::system::clock::{Clock, ManualClock, SystemClock, Timestamp};
use heda_node::system::stop::{StopSignal, StopSwitch};
use heda_node::wire::WireLimits;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// A guard as its configuration says, with this ledger and these coins.
pub fn guard(
    config: &ProviderConfig,
    identity: &Identity,
    ledger: Ledger,
    randomness: Randomness,
) -> ProviderService {
    ProviderService {
        policy: Policy::new(config),
        config: config.path.clone(),
        data: ProviderData::load(config).unwrap(),
        ledger,
        identity: identity.signing_key().clone(),
        row_secret: [7; 32].into(),
        randomness,
        metrics: Arc::new(Metrics::default()),
    }
}

pub const YEAR: Duration = Duration::from_secs(365 * 86_400);

pub fn now() -> Timestamp {
    SystemClock.now()
}

pub fn identity(name: &str) -> Identity {
    identity_from(name, now(), YEAR)
}

pub fn identity_from(name: &str, start: Timestamp, validity: Duration) -> Identity {
    let mut rng = Randomness::seeded(7).fork(name, 0).unwrap();
    Identity::generate(name, start, validity, &mut rng).unwrap()
}

pub fn pinned(label: &str, identity: &Identity) -> TrustedPeer {
    TrustedPeer {
        label: label.into(),
        recognition: Recognition::Fingerprint(identity.fingerprint()),
    }
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Limits short enough for tests and long enough for a busy machine.
pub fn wire_limits(patience: Duration) -> WireLimits {
    WireLimits {
        patience,
        inbox_bytes: 8 << 20,
    }
}

pub const ECHO: u8 = 1;
pub const BYE: u8 = 2;
pub const LIMIT: usize = 8 << 20;

/// Sends back what it gets until it gets an empty message.
pub struct Echo;

impl SessionHandler for Echo {
    fn serve(
        &self,
        _: &PeerIdentity,
        channel: &mut Channel,
        stop: &StopSignal,
    ) -> Result<(), SessionError> {
        loop {
            let message = channel.receive(ECHO, LIMIT)?;
            if stop.is_set() {
                return Err(SessionError::stopping());
            }
            channel.send(ECHO, &message)?;
            if message.is_empty() {
                return Ok(());
            }
        }
    }
}

/// Refuses everyone with a reason.
pub struct Refuser;

impl SessionHandler for Refuser {
    fn serve(
        &self,
        peer: &PeerIdentity,
        _: &mut Channel,
        _: &StopSignal,
    ) -> Result<(), SessionError> {
        let words = format!("{} asks for too much", peer.label);
        Err(SessionError::new(Ending::Refused, words))
    }
}

pub struct Running {
    pub runtime: Runtime,
    pub identity: Identity,
    pub address: SocketAddr,
    pub metrics_address: SocketAddr,
    pub metrics: Arc<Metrics>,
    pub switch: StopSwitch,
    pub task: Option<JoinHandle<Result<(), DaemonError>>>,
}

pub struct Setup {
    pub identity: Identity,
    pub peers: Vec<TrustedPeer>,
    pub sessions: SessionLimits,
    pub connections: ConnectionLimits,
    pub clock: Arc<dyn Clock>,
    pub stop_grace: Duration,
}

impl Setup {
    pub fn for_peers(peers: Vec<TrustedPeer>) -> Self {
        Self {
            identity: identity("provider"),
            peers,
            sessions: SessionLimits {
                wire: wire_limits(Duration::from_secs(20)),
                // Tests that break the protocol look at what comes next.
                breach_pause: Duration::ZERO,
                ..SessionLimits::default()
            },
            connections: ConnectionLimits::default(),
            clock: Arc::new(ManualClock::at(now())),
            stop_grace: Duration::from_secs(20),
        }
    }

    pub fn start(self, handler: Arc<dyn SessionHandler>) -> Running {
        let runtime = runtime();
        let metrics = Arc::new(Metrics::default());
        let settings = DaemonSettings {
            identity: self.identity.clone(),
            trust: Arc::new(Trust::new(self.peers).unwrap()),
            clock: self.clock,
            listen: "127.0.0.1:0".parse().unwrap(),
            metrics: Some("127.0.0.1:0".parse().unwrap()),
            connections: self.connections,
            sessions: self.sessions,
            stop_grace: self.stop_grace,
        };
        let bound = runtime.block_on(Daemon::bind(settings, Arc::clone(&metrics)));
        let daemon = bound.unwrap();
        let (switch, stop) = StopSwitch::new();
        Running {
            identity: self.identity,
            address: daemon.address(),
            metrics_address: daemon.metrics_address().unwrap(),
            metrics,
            switch,
            task: Some(runtime.spawn(daemon.run(handler, stop))),
            runtime,
        }
    }
}

impl Running {
    pub fn remote(&self) -> RemoteProvider {
        RemoteProvider {
            address: self.address.to_string(),
            peer: pinned("provider", &self.identity),
        }
    }

    /// Stops and says how the daemon ended.
    pub fn stop(&mut self) -> Result<(), DaemonError> {
        self.switch.stop();
        let task = self.task.take().unwrap();
        self.runtime.block_on(task).unwrap()
    }
}

/// A data user.
pub struct User {
    pub runtime: Runtime,
    pub connector: Connector,
}

impl User {
    pub fn new(identity: Identity) -> Self {
        Self {
            runtime: runtime(),
            connector: Connector {
                identity,
                clock: Arc::new(SystemClock),
                limits: wire_limits(Duration::from_secs(20)),
                connect_patience: Duration::from_secs(20),
            },
        }
    }

    pub fn open(&self, remote: &RemoteProvider) -> Result<Channel, ConnectError> {
        let session = self.runtime.block_on(self.connector.open(remote))?;
        Ok(Channel::new(Box::new(session.wire)))
    }
}

/// One message there and back.
pub fn echo(channel: &mut Channel, message: &[u8]) -> Result<(), ChannelError> {
    channel.send(ECHO, message)?;
    assert_eq!(channel.receive(ECHO, LIMIT)?, message);
    Ok(())
}

/// A line between two parties that can be cut after a number of bytes.
pub struct Proxy {
    pub address: SocketAddr,
    target: SocketAddr,
}

impl Proxy {
    /// Only an address: whoever connects is refused until [`Proxy::open`].
    pub fn reserve(target: SocketAddr) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        Self { address, target }
    }

    /// Starts to carry connections on the reserved address.
    pub fn open(self) {
        carry(
            std::net::TcpListener::bind(self.address).unwrap(),
            self.target,
            Cuts::default(),
        );
    }

    /// A line that carries; each connection is cut after `cut` bytes in either direction.
    pub fn start(target: SocketAddr, cut: usize) -> Self {
        let cuts = Cuts {
            first: Vec::new(),
            rest: Some(cut),
        };
        Self::with(target, cuts)
    }

    /// A line that is cut after these numbers of bytes, one connection after the other, and then
    /// holds.
    pub fn cut_at(target: SocketAddr, first: &[usize]) -> Self {
        let cuts = Cuts {
            first: first.to_vec(),
            rest: None,
        };
        Self::with(target, cuts)
    }

    fn with(target: SocketAddr, cuts: Cuts) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        carry(listener, target, cuts);
        Self { address, target }
    }
}

/// Where connections are cut: the first ones here, all others there.
#[derive(Default)]
struct Cuts {
    first: Vec<usize>,
    rest: Option<usize>,
}

fn carry(listener: std::net::TcpListener, target: SocketAddr, cuts: Cuts) {
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let cut = cuts.first.get(number).copied().or(cuts.rest);
            let (Ok(client), Ok(server)) = (client, std::net::TcpStream::connect(target)) else {
                continue;
            };
            let (client2, server2) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || copy_until(client, server, cut));
            std::thread::spawn(move || copy_until(server2, client2, cut));
        }
    });
}

fn copy_until(mut from: std::net::TcpStream, mut to: std::net::TcpStream, cut: Option<usize>) {
    use std::io::{Read, Write};
    let mut left = cut.unwrap_or(usize::MAX);
    let mut buffer = vec![0; 64 << 10];
    while left > 0 {
        let n = match from.read(&mut buffer) {
            Ok(n) if n > 0 => n.min(left),
            _ => break,
        };
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
        left -= n;
    }
    let _ = from.shutdown(std::net::Shutdown::Both);
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// A line that can be cut and led to another place.
pub struct MovableLine {
    pub address: SocketAddr,
    target: Arc<std::sync::Mutex<Option<SocketAddr>>>,
    open: Arc<std::sync::Mutex<Vec<std::net::TcpStream>>>,
}

impl MovableLine {
    pub fn start(target: SocketAddr) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let line = Self {
            address: listener.local_addr().unwrap(),
            target: Arc::new(std::sync::Mutex::new(Some(target))),
            open: Arc::default(),
        };
        let (target, open) = (Arc::clone(&line.target), Arc::clone(&line.open));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let place = *target.lock().unwrap();
                let server = place.and_then(|place| std::net::TcpStream::connect(place).ok());
                let (Ok(client), Some(server)) = (client, server) else {
                    continue;
                };
                let (client2, server2) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                open.lock().unwrap().push(client.try_clone().unwrap());
                std::thread::spawn(move || copy_until(client, server, None));
                std::thread::spawn(move || copy_until(server2, client2, None));
            }
        });
        line
    }

    /// Ends all connections; new ones lead nowhere.
    pub fn cut(&self) {
        *self.target.lock().unwrap() = None;
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    pub fn lead_to(&self, target: SocketAddr) {
        *self.target.lock().unwrap() = Some(target);
    }
}
