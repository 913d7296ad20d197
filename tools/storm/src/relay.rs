//! A party in the middle that holds everybody's keys, reads all messages, and changes some: to the
//! provider it is a hostile data user, to the data user a hostile provider.

use crate::chance::Chance;
use crate::tally::Trouble;
use crate::tls::{acceptor, connector, raw_frame, read_frame, secured};
use heda_node::wire::frame::FrameKind;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::runtime::Handle;

/// Whose messages are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hostile {
    Nobody,
    DataUser,
    Provider,
}

/// Frames as they were sent.
pub(crate) type Recording = Vec<(FrameKind, Vec<u8>)>;

/// The party, and what it has seen and done.
pub(crate) struct Relay {
    pub(crate) port: u16,
    pub(crate) changed: Arc<AtomicU64>,
    /// What the data user sent in its latest session.
    pub(crate) recorded: Arc<Mutex<Recording>>,
}

impl Relay {
    /// Stands between a data user and a provider, on a port of its own.
    pub(crate) fn start(
        runtime: &Handle,
        (user, provider): (&Path, &Path),
        target: u16,
        hostile: Hostile,
        seed: u64,
    ) -> Result<Self, Trouble> {
        let (accept, connect) = (acceptor(provider)?, connector(user)?);
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
        let relay = Self {
            port: listener.local_addr()?.port(),
            changed: Arc::default(),
            recorded: Arc::default(),
        };
        let (changed, recorded) = (Arc::clone(&relay.changed), Arc::clone(&relay.recorded));
        let mut chance = Chance::new(seed);
        runtime.spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let Ok(user) = accept.accept(tcp).await else {
                    continue;
                };
                let Ok(provider) = secured(&connect, 1, target).await else {
                    continue;
                };
                let (from_user, to_user) = tokio::io::split(user);
                let (from_provider, to_provider) = tokio::io::split(provider);
                let of = |who, chance: &mut Chance| Changes {
                    at: (hostile == who).then(|| chance.below(30)),
                    chance: Chance::new(chance.next()),
                    changed: Arc::clone(&changed),
                    recorded: None,
                };
                let mut there = of(Hostile::DataUser, &mut chance);
                recorded
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .clear();
                there.recorded = Some(Arc::clone(&recorded));
                let back = of(Hostile::Provider, &mut chance);
                tokio::spawn(pass(from_user, to_provider, there));
                tokio::spawn(pass(from_provider, to_user, back));
            }
        });
        Ok(relay)
    }
}

/// What happens to one direction of one connection.
struct Changes {
    at: Option<usize>,
    chance: Chance,
    changed: Arc<AtomicU64>,
    recorded: Option<Arc<Mutex<Recording>>>,
}

async fn pass<R, W>(mut from: R, mut to: W, mut changes: Changes)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut number = 0;
    while let Ok(Some((kind, mut payload))) = read_frame(&mut from).await {
        if let Some(recorded) = &changes.recorded {
            let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
            recorded.push((kind, payload.clone()));
        }
        if changes.at == Some(number) {
            changes.chance.mutate(&mut payload);
            changes.changed.fetch_add(1, Relaxed);
        }
        number += 1;
        let sent = to.write_all(&raw_frame(kind, &payload)).await;
        if sent.is_err() || to.flush().await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}
