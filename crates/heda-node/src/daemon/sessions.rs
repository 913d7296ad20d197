//! Receives peers that proved who they are: greeting, a place among the sessions, a thread.
//!
//! A connection is one session. Whoever gets none is told why in a frame of its own, with a code
//! that its program understands.

use crate::daemon::breaches::Breaches;
use crate::daemon::counter::{CountedPlace, Counter};
use crate::daemon::listener::PeerStream;
use crate::daemon::metrics::{Ending, Metrics};
use crate::daemon::session::{SessionError, SessionHandler, SessionLimits};
use crate::identity::trust::PeerIdentity;
use crate::system::stop::StopSignal;
use crate::wire::carrier::{drain, read_frame, write_frame};
use crate::wire::frame::{Frame, FrameError, FrameKind};
use crate::wire::greeting::Greeting;
use crate::wire::{NetworkWire, Surroundings};
use heda_blocks::channel::Channel;
use heda_blocks::stop::{Stop, StopCode};
use heda_job::proposal::PROTOCOL_VERSION;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

/// Everything that sessions share.
pub(crate) struct Sessions {
    handler: Arc<dyn SessionHandler>,
    limits: SessionLimits,
    metrics: Arc<Metrics>,
    stop: StopSignal,
    all: Counter<()>,
    by_peer: Counter<[u8; 32]>,
    breaches: Breaches,
}

/// Held by a session as long as it runs.
struct SessionPlaces {
    _in_all: CountedPlace<()>,
    _of_peer: CountedPlace<[u8; 32]>,
}

impl Sessions {
    pub(crate) fn new(
        handler: Arc<dyn SessionHandler>,
        limits: SessionLimits,
        metrics: Arc<Metrics>,
        stop: StopSignal,
    ) -> Self {
        Self {
            handler,
            breaches: Breaches::new(limits.breach_pause),
            limits,
            metrics,
            stop,
            all: Counter::new(),
            by_peer: Counter::new(),
        }
    }

    /// Serves one connection to its end.
    pub(crate) async fn receive(self: Arc<Self>, connection: PeerStream) {
        let PeerStream {
            mut stream,
            peer,
            _counted,
        } = connection;
        let place = match self.greet(&mut stream, &peer).await {
            Ok(place) => place,
            Err(stop) => {
                tracing::warn!(peer = peer.label, cause = stop.words, "no session");
                let told = tell(&mut stream, &stop);
                let _ = tokio::time::timeout(self.limits.greeting_patience, told).await;
                return part_politely(&mut stream).await;
            }
        };
        let around = Surroundings {
            waiting: self.metrics.waiting_bytes(),
            stop: Some(self.stop.clone()),
            has_neighbours: true,
        };
        let mut wire = NetworkWire::new(stream, self.limits.wire, around);
        let carrier = wire.take_carrier();
        let session = tokio::task::spawn_blocking(move || self.run(&peer, wire, place));
        // A session that panicked has left its trace in the metrics already.
        let _ = session.await;
        if let Some(carrier) = carrier {
            let _ = carrier.await;
        }
    }

    /// Hears the peer's greeting and finds it a place; ours is the answer.
    async fn greet<S>(&self, stream: &mut S, peer: &PeerIdentity) -> Result<SessionPlaces, Stop>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut stopping = self.stop.clone();
        let first = tokio::select! {
            first = tokio::time::timeout(self.limits.greeting_patience, read_frame(stream)) => first,
            () = stopping.wait() => return Err(is_stopping()),
        };
        let missing = |cause: &dyn std::fmt::Display| Stop::new(StopCode::Protocol, cause);
        let greeting = match first {
            Ok(Ok(Some((FrameKind::Greeting, payload)))) => Greeting::from_bytes(&payload),
            Ok(Ok(_)) => Err(FrameError::NoGreeting),
            Ok(Err(error)) => return Err(missing(&error)),
            Err(_) => return Err(missing(&"no greeting in time")),
        };
        greeting
            .and_then(Greeting::check)
            .map_err(|error| match error {
                FrameError::Version { theirs, .. } => other_version(theirs),
                error => missing(&error),
            })?;
        let place = self.admit(peer)?;
        let answered = write_frame(stream, &Frame::greeting()).await;
        answered.map_err(|e| missing(&e))?;
        Ok(place)
    }

    fn admit(&self, peer: &PeerIdentity) -> Result<SessionPlaces, Stop> {
        if self.stop.is_set() {
            return Err(is_stopping());
        }
        let limits = &self.limits;
        if let Some(left) = self
            .breaches
            .pause(peer.fingerprint.as_bytes(), Instant::now())
        {
            self.metrics.session_refused_paused();
            let words = format!(
                "an earlier session of this data user broke the protocol; it may come back in {} s",
                left.as_secs() + 1
            );
            return Err(Stop::new(StopCode::Busy, words));
        }
        let key = *peer.fingerprint.as_bytes();
        let places = (self.all.enter((), limits.sessions))
            .zip(self.by_peer.enter(key, limits.sessions_per_peer));
        let places = places.map(|(_in_all, _of_peer)| SessionPlaces { _in_all, _of_peer });
        places.ok_or_else(|| {
            self.metrics.session_refused_busy();
            let words = format!(
                "this provider runs as many sessions as it may ({} in all, {} of one data user)",
                limits.sessions, limits.sessions_per_peer
            );
            Stop::new(StopCode::Busy, words)
        })
    }

    fn run(&self, peer: &PeerIdentity, wire: NetworkWire, place: SessionPlaces) {
        let span = tracing::info_span!("session", peer = peer.label);
        let _entered = span.enter();
        tracing::info!("session started");
        let running = Running::start(&self.metrics, Channel::new(Box::new(wire)), place);
        let ending = running.finish(|channel| {
            let served = self.handler.serve(peer, channel, &self.stop);
            // A session that ended because the peer was silent after the wish to stop.
            served.map_err(|error| match error.ending {
                Ending::PeerFailed if self.stop.is_set() => SessionError::stopping(),
                _ => error,
            })
        });
        if ending == Ending::Breach {
            self.breaches
                .note(*peer.fingerprint.as_bytes(), Instant::now());
        }
    }
}

fn is_stopping() -> Stop {
    Stop::new(
        StopCode::Stopping,
        "this provider is stopping; try again later",
    )
}

fn other_version(theirs: u32) -> Stop {
    let words = format!(
        "this provider needs protocol version {PROTOCOL_VERSION}, the data user speaks version \
         {theirs}; {}",
        match theirs < PROTOCOL_VERSION {
            true => "the data user must update",
            false => "the provider must update",
        }
    );
    Stop::new(StopCode::Version, words)
}

/// Our version first, so that a peer of any other knows whom it talks to.
async fn tell<S: AsyncWrite + Unpin>(stream: &mut S, stop: &Stop) -> std::io::Result<()> {
    if stop.code == StopCode::Version {
        write_frame(stream, &Frame::greeting()).await?;
    }
    write_frame(stream, &Frame::stop(stop)).await?;
    stream.shutdown().await
}

/// Ends a connection of somebody who gets no session, so that the words which explain it arrive.
pub(crate) async fn part_politely<S>(stream: &mut S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let _ = stream.shutdown().await;
    drain(stream, Duration::from_secs(1)).await;
}

/// A session that is counted until it ends, also when its thread panics.
struct Running<'a> {
    metrics: &'a Metrics,
    channel: Channel,
    ending: Ending,
    _place: SessionPlaces,
}

impl<'a> Running<'a> {
    fn start(metrics: &'a Metrics, channel: Channel, place: SessionPlaces) -> Self {
        metrics.session_started();
        Self {
            metrics,
            channel,
            ending: Ending::Failed,
            _place: place,
        }
    }

    fn finish(mut self, serve: impl FnOnce(&mut Channel) -> Result<(), SessionError>) -> Ending {
        match serve(&mut self.channel) {
            Ok(()) => {
                self.ending = Ending::Finished;
                tracing::info!("session finished");
            }
            Err(error) => {
                self.ending = error.ending;
                if let Some(stop) = &error.for_peer {
                    self.channel.stop(stop);
                }
                tracing::warn!(ending = ?error.ending, cause = error.for_log, "session ended");
            }
        }
        self.ending
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let traffic = self.channel.total_traffic();
        self.metrics
            .session_ended(self.ending, traffic.bytes_sent, traffic.bytes_received);
    }
}
