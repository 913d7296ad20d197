//! The wish to stop, seen by everything that runs for long.

use tokio::sync::watch;

/// Turned once, by whoever received the wish.
#[derive(Debug, Clone)]
pub struct StopSwitch(watch::Sender<bool>);

/// Looked at between iterations, waited for by accept loops.
#[derive(Debug, Clone)]
pub struct StopSignal(watch::Receiver<bool>);

impl StopSwitch {
    /// A switch that is off, and its signal.
    pub fn new() -> (Self, StopSignal) {
        let (sender, receiver) = watch::channel(false);
        (Self(sender), StopSignal(receiver))
    }

    /// Asks everyone to come to an end.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl StopSignal {
    /// Whether work should come to an end at the next good point.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until work should come to an end.
    pub async fn wait(&mut self) {
        // A switch that was dropped can never be turned: wait for ever, as one that stays off.
        if self.0.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Turns the switch when the system asks the process to end (SIGTERM or SIGINT). From the return
/// of this function on, such a wish is heard; it must be called within a runtime.
pub fn stop_on_signals(switch: StopSwitch) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        switch.stop();
    });
    Ok(())
}

/// Ends the process with this exit code on SIGINT, after `before`: for work that has no good point to
/// stop at. Files are whole at any time, because they are written under another name first.
pub fn exit_on_interrupt(code: i32, before: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let mut interrupt = {
        let _within = runtime.enter();
        signal(SignalKind::interrupt())?
    };
    let wait = move || {
        if runtime.block_on(interrupt.recv()).is_some() {
            before();
            std::process::exit(code);
        }
    };
    let thread = std::thread::Builder::new().name("interrupt".into());
    thread.spawn(wait).map(drop)
}
