//! The daemon as a whole: from a configuration to a process that serves until it is told to stop.

use crate::config::ProviderConfig;
use crate::daemon::listener::ConnectionLimits;
use crate::daemon::metrics::Metrics;
use crate::daemon::session::SessionLimits;
use crate::daemon::{Daemon, DaemonError, DaemonSettings};
use crate::guard::ProviderService;
use crate::guard::ledger::{Ledger, LedgerError, LedgerLoss};
use crate::guard::policy::Policy;
use crate::guard::provider_data::ProviderData;
use crate::identity::Identity;
use crate::identity::trust::Trust;
use crate::system::clock::{Clock, SystemClock};
use crate::system::stop::{StopSignal, StopSwitch, stop_on_signals};
use crate::system::{files, memory};
use crate::wire::WireLimits;
use heda_crypto::random::Randomness;
use rand_core::Rng;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// Serves until SIGTERM or SIGINT; `ready` is called with the address when peers can connect.
pub fn serve(config: &ProviderConfig, ready: impl FnOnce(SocketAddr)) -> Result<(), DaemonError> {
    // The process is the daemon's own.
    memory::share_one_arena();
    // Before anyone is told that we serve: whoever knows may also ask us to stop.
    serve_with(config, ready, || {
        let (switch, stop) = StopSwitch::new();
        stop_on_signals(switch).map(|()| stop)
    })
}

/// The same until `stop` is set: for programs that hear signals themselves.
pub fn serve_until(
    config: &ProviderConfig,
    ready: impl FnOnce(SocketAddr),
    stop: StopSignal,
) -> Result<(), DaemonError> {
    serve_with(config, ready, || Ok(stop))
}

/// `stop` is called within the runtime.
fn serve_with(
    config: &ProviderConfig,
    ready: impl FnOnce(SocketAddr),
    stop: impl FnOnce() -> std::io::Result<StopSignal>,
) -> Result<(), DaemonError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let metrics = Arc::new(Metrics::default());
    let identity = Identity::load(&config.identity)?;
    let guard = guard(config, &identity, &clock, &metrics)?;
    let settings = settings(config, identity, clock)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // A thread of a session that is over keeps what it has touched.
        .thread_keep_alive(Duration::from_secs(2))
        .build()
        .map_err(DaemonError::Runtime)?;
    let stop = runtime.block_on(async { stop() });
    let stop = stop.map_err(DaemonError::Runtime)?;
    let served = runtime.block_on(async {
        let daemon = Daemon::bind(settings, metrics).await?;
        let address = daemon.address();
        tracing::info!(%address, data_set = guard.policy.data_set, rows = guard.data.rows(), "serving");
        ready(address);
        daemon.run(Arc::new(guard), stop).await
    });
    // Sessions that did not end in time hold threads; they end with the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

fn guard(
    config: &ProviderConfig,
    identity: &Identity,
    clock: &Arc<dyn Clock>,
    metrics: &Arc<Metrics>,
) -> Result<ProviderService, DaemonError> {
    let data = ProviderData::load(config).map_err(DaemonError::Data)?;
    for words in data.warnings() {
        tracing::warn!(words, "data");
    }
    let randomness = match &config.reproducible {
        None => Randomness::from_os(),
        Some(reproducible) => {
            tracing::warn!("reproducible randomness: this provider protects nothing");
            Randomness::seeded(reproducible.seed).party(reproducible.party.as_str())
        }
    };
    let ledger = open_ledger(config, clock)?;
    let cap = config.limits.private_cap();
    let name = config.data_set.as_str();
    for other in ledger.other_data_sets(name, Some(data.digest()), cap.as_ref())? {
        tracing::warn!(words = %other, "data set");
    }
    clean(config)?;
    let guard = ProviderService {
        policy: Policy::new(config),
        config: config.path.clone(),
        data,
        row_secret: row_secret(&row_secret_path(&config.store), &ledger)?,
        ledger,
        identity: identity.signing_key().clone(),
        randomness,
        metrics: Arc::clone(metrics),
    };
    guard.show_budget()?;
    Ok(guard)
}

/// Opens the ledger of a configuration and sees that it can be written.
pub(crate) fn open_ledger(
    config: &ProviderConfig,
    clock: &Arc<dyn Clock>,
) -> Result<Ledger, DaemonError> {
    create_store(&config.store)?;
    let place = config.ledger_place();
    // The key is made after the ledger: without one, the ledger was there.
    if !place.ledger.exists() && row_secret_path(&config.store).exists() {
        return Err(LedgerError::Lost(LedgerLoss::Gone(place.ledger)).into());
    }
    let ledger = Ledger::open(&place, Arc::clone(clock))?;
    let ledger = ledger.keeping(config.limits.records_kept.get());
    ledger.try_writing()?;
    Ok(ledger)
}

/// Makes the folder of ledger and secrets, for its owner only.
fn create_store(folder: &Path) -> Result<(), DaemonError> {
    let created = files::create_private_folder(folder);
    created.map_err(|cause| DaemonError::Store {
        path: folder.to_owned(),
        cause,
    })
}

const ROW_SECRET: &str = "row-order.key";

/// Where the secret that orders the rows of jobs lies.
pub(crate) fn row_secret_path(store: &Path) -> PathBuf {
    store.join(ROW_SECRET)
}

/// Removes what a start that was killed has left.
fn clean(config: &ProviderConfig) -> Result<(), DaemonError> {
    let place = config.ledger_place();
    let anchor = place.anchor.file_name().and_then(|name| name.to_str());
    let folder_of_anchor = place.anchor.parent().unwrap_or(&config.identity);
    let parts = [
        (config.store.as_path(), [ROW_SECRET, "ledger.sqlite"]),
        (
            folder_of_anchor,
            [anchor.unwrap_or(ROW_SECRET), "certificate.pem"],
        ),
    ];
    for (folder, names) in parts {
        let cleaned = files::remove_partial(folder, &names);
        cleaned.map_err(|cause| DaemonError::Store {
            path: folder.to_owned(),
            cause,
        })?;
    }
    Ok(())
}

/// That the secret which orders the rows is private, and not lost: without it a job would go on
/// with other rows than it began with, and be evaluated on rows that it was trained on.
pub(crate) fn check_row_secret(path: &Path, ledger: &Ledger) -> Result<(), DaemonError> {
    let store = |words: &str| {
        Err(DaemonError::Store {
            path: path.to_owned(),
            cause: std::io::Error::other(words),
        })
    };
    match files::is_private(path) {
        Ok(false) => store("can be read by others; run `chmod 600` on it"),
        // A start of an earlier version that was killed has left it empty.
        Ok(true) if is_empty(path) && !ledger.has_begun_jobs()? => {
            std::fs::remove_file(path).or_else(|e| store(&e.to_string()))
        }
        Ok(true) => Ok(()),
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => store(&e.to_string()),
        Err(_) if ledger.has_begun_jobs()? => store(
            "missing beside a ledger with jobs; restore it from a backup, or, if there is none, \
             put 32 random bytes there with mode 600: jobs of before must then not be resumed",
        ),
        Err(_) => Ok(()),
    }
}

fn is_empty(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.len() == 0)
}

/// The secret that orders the rows of jobs; made at the first start.
fn row_secret(path: &Path, ledger: &Ledger) -> Result<Zeroizing<[u8; 32]>, DaemonError> {
    let store = |cause| DaemonError::Store {
        path: path.to_owned(),
        cause,
    };
    check_row_secret(path, ledger)?;
    let mut fresh = Zeroizing::new([0; 32]);
    Randomness::from_os()
        .fork("row order", 0)?
        .fill_bytes(fresh.as_mut());
    match files::create_secret(path, fresh.as_ref()) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(store(e)),
        _ => {}
    }
    let stored = Zeroizing::new(files::read_bounded(path, 32).map_err(store)?);
    let length = || {
        store(std::io::Error::other(
            "not 32 bytes; restore it from a backup",
        ))
    };
    let secret: [u8; 32] = stored.as_slice().try_into().map_err(|_| length())?;
    Ok(Zeroizing::new(secret))
}

fn settings(
    config: &ProviderConfig,
    identity: Identity,
    clock: Arc<dyn Clock>,
) -> Result<DaemonSettings, DaemonError> {
    let limits = &config.limits;
    let count = |n: std::num::NonZeroU64| usize::try_from(n.get()).unwrap_or(usize::MAX);
    Ok(DaemonSettings {
        identity,
        trust: Arc::new(Trust::new(config.trusted_peers()?)?),
        clock,
        listen: config.listen,
        metrics: config.metrics,
        connections: ConnectionLimits {
            strangers: count(limits.unknown_connections),
            ..ConnectionLimits::default()
        },
        sessions: SessionLimits {
            sessions: count(limits.concurrent_jobs),
            sessions_per_peer: count(limits.concurrent_jobs_per_peer),
            wire: WireLimits {
                patience: limits.answer_seconds.duration(),
                inbox_bytes: limits.inbox_bytes(),
            },
            breach_pause: Duration::from_secs(limits.breach_pause_seconds.into()),
            ..SessionLimits::default()
        },
        stop_grace: limits.stop_grace_seconds.duration(),
    })
}
