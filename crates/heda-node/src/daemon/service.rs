//! The gRPC side of the provider: the session method and the standard health service.
//!
//! What `protoc` would generate is written out here; it is one method.

use crate::daemon::listener::{Counted, Counter};
use crate::daemon::metrics::{Ending, Metrics};
use crate::daemon::session::{SessionError, SessionHandler, SessionLimits};
use crate::identity::trust::PeerIdentity;
use crate::system::stop::StopSignal;
use crate::wire::NetworkWire;
use crate::wire::frame::{FRAME_LIMIT, Frame, check_greeting};
use heda_blocks::channel::Channel;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::tokio_stream::StreamExt;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::{BoxFuture, BoxStream, Service, http};
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

/// The name of the service, also for the health service.
pub const SERVICE: &str = "heda.v1.Heda";
/// The path of its only method.
pub(crate) const SESSION_PATH: &str = "/heda.v1.Heda/Session";

/// Everything that sessions share.
pub(crate) struct Sessions {
    pub(crate) handler: Arc<dyn SessionHandler>,
    pub(crate) limits: SessionLimits,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stop: StopSignal,
    all: Counter<()>,
    by_peer: Counter<[u8; 32]>,
}

/// A session's places among all and among its peer's.
type Place = (Counted<()>, Counted<[u8; 32]>);

impl Sessions {
    pub(crate) fn new(
        handler: Arc<dyn SessionHandler>,
        limits: SessionLimits,
        metrics: Arc<Metrics>,
        stop: StopSignal,
    ) -> Self {
        Self {
            handler,
            limits,
            metrics,
            stop,
            all: Counter::new(),
            by_peer: Counter::new(),
        }
    }

    fn admit(&self, peer: &PeerIdentity) -> Result<Place, Status> {
        if self.stop.is_set() {
            return Err(Status::unavailable(
                "this provider is stopping; try again later",
            ));
        }
        let limits = &self.limits;
        let place = self.all.enter((), limits.sessions).zip(
            self.by_peer
                .enter(*peer.fingerprint.as_bytes(), limits.sessions_per_peer),
        );
        place.ok_or_else(|| {
            self.metrics.session_refused_busy();
            Status::resource_exhausted(format!(
                "this provider runs as many sessions as it may ({} in all, {} of one data user)",
                limits.sessions, limits.sessions_per_peer
            ))
        })
    }

    /// Greets the peer and hands the session to a thread of its own.
    async fn open(
        self: Arc<Self>,
        request: Request<Streaming<Frame>>,
    ) -> Result<Response<BoxStream<Frame>>, Status> {
        let peer = request.extensions().get::<PeerIdentity>().cloned();
        let peer = peer.ok_or_else(|| Status::unauthenticated("no certificate"))?;
        let place = self.admit(&peer)?;
        let mut incoming = request.into_inner();
        let first = tokio::time::timeout(self.limits.greeting_patience, incoming.message());
        let first = first
            .await
            .map_err(|_| Status::deadline_exceeded("no greeting in time"))??;
        check_greeting(first).map_err(|e| Status::failed_precondition(e.to_string()))?;
        let (outbox, outgoing) = NetworkWire::outbox();
        let wire = NetworkWire::new(incoming, outbox, self.limits.wire);
        tokio::task::spawn_blocking(move || self.run(&peer, wire, place));
        let greeting = tonic::codegen::tokio_stream::once(Frame::hello());
        let frames = greeting.chain(ReceiverStream::new(outgoing)).map(Ok);
        Ok(Response::new(Box::pin(frames)))
    }

    fn run(&self, peer: &PeerIdentity, wire: NetworkWire, place: Place) {
        let span = tracing::info_span!("session", peer = peer.label);
        let _entered = span.enter();
        tracing::info!("session started");
        let running = Running::start(&self.metrics, Channel::new(Box::new(wire)), place);
        running.finish(|channel| self.handler.serve(peer, channel, &self.stop));
    }
}

/// A session that is counted until it ends, also when its thread panics.
struct Running<'a> {
    metrics: &'a Metrics,
    channel: Channel,
    ending: Ending,
    _place: Place,
}

impl<'a> Running<'a> {
    fn start(metrics: &'a Metrics, channel: Channel, place: Place) -> Self {
        metrics.session_started();
        Self {
            metrics,
            channel,
            ending: Ending::Failed,
            _place: place,
        }
    }

    fn finish(mut self, serve: impl FnOnce(&mut Channel) -> Result<(), SessionError>) {
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
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let traffic = self.channel.total_traffic();
        self.metrics
            .session_ended(self.ending, traffic.bytes_sent, traffic.bytes_received);
    }
}

/// The session method, as tonic calls it.
struct SessionMethod(Arc<Sessions>);

impl tonic::server::StreamingService<Frame> for SessionMethod {
    type Response = Frame;
    type ResponseStream = BoxStream<Frame>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    fn call(&mut self, request: Request<Streaming<Frame>>) -> Self::Future {
        Box::pin(Arc::clone(&self.0).open(request))
    }
}

/// Leads requests to the session method or to the health service `H`.
#[derive(Clone)]
pub(crate) struct Router<H> {
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) health: H,
}

impl<H> Service<http::Request<Body>> for Router<H>
where
    H: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    H::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.health.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let path = request.uri().path();
        if path == SESSION_PATH {
            let method = SessionMethod(Arc::clone(&self.sessions));
            return Box::pin(async move {
                let mut grpc = tonic::server::Grpc::new(ProstCodec::<Frame, Frame>::default())
                    .max_decoding_message_size(FRAME_LIMIT);
                Ok(grpc.streaming(method, request).await)
            });
        }
        if path.starts_with("/grpc.health.v1.Health/") {
            return Box::pin(self.health.call(request));
        }
        Box::pin(async { Ok(Status::unimplemented("no such method").into_http()) })
    }
}
