//! Memory that the allocator keeps for itself after a burst, given back to the system.
//!
//! glibc keeps what was freed in an arena a thread, so that a daemon would stay as large as its
//! busiest moment: after an attack with proposals of 900 kB a third larger than before. It gives
//! back the end of its first arena only, so a daemon has just that one: what its threads do takes far
//! longer than to ask for memory. The page on reliability has the figures, `heda-storm` measures them.
//!
//! While a job runs the opposite is wanted: each gradient takes and frees the same megabytes, and pages that
//! went back to the system in between are handed out anew and cleared, which took a sixth of the time with many columns.
//! So a daemon gives back when it has no session, and while it has one not more often than every six seconds, however many
//! strangers come and go.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// How long what ended together is waited for.
const PAUSE: Duration = Duration::from_secs(2);
/// How long the end of what still runs is waited for: not longer, for a session may be one that does nothing.
const PATIENCE: Duration = Duration::from_secs(6);

/// Gives memory back some time after something has ended, until this is dropped.
#[derive(Debug)]
pub(crate) struct GivesBack {
    ended: Arc<Notify>,
    task: JoinHandle<()>,
}

impl GivesBack {
    /// Must be called within a runtime; `busy` tells whether the memory is in use.
    pub(crate) fn start(busy: impl Fn() -> bool + Send + 'static) -> Self {
        Self::start_with(busy, give_back)
    }

    fn start_with(busy: impl Fn() -> bool + Send + 'static, give_back: fn()) -> Self {
        let ended = Arc::new(Notify::new());
        let heard = Arc::clone(&ended);
        let task = tokio::spawn(async move {
            loop {
                heard.notified().await;
                let mut waited = Duration::ZERO;
                while waited.is_zero() || busy() && waited < PATIENCE {
                    tokio::time::sleep(PAUSE).await;
                    waited += PAUSE;
                }
                // A walk over all arenas: not on a thread that others wait for.
                let _ = tokio::task::spawn_blocking(give_back).await;
            }
        });
        Self { ended, task }
    }

    /// Says that a connection has ended. However many do, it is one walk.
    pub(crate) fn soon(&self) {
        self.ended.notify_one();
    }
}

impl Drop for GivesBack {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Lets all threads share one arena. To be called before there are others.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(
    unsafe_code,
    reason = "no crate that we use offers mallopt; see SAFETY"
)]
pub(crate) fn share_one_arena() {
    // SAFETY: mallopt takes two numbers and no pointer; M_ARENA_MAX bounds how many arenas are made
    // from now on and leaves those that there are as they are (mallopt(3)).
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Blocks up to this size come from an arena; glibc takes no larger number.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGEST_BLOCK: libc::c_int = 32 << 20;

/// Lets the allocator keep blocks up to that size when they are freed, until it is told to give them back. For
/// programs that run jobs; a library leaves such choices to whoever uses it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(
    unsafe_code,
    reason = "no crate that we use offers mallopt; see SAFETY"
)]
pub fn keep_freed_memory() {
    // SAFETY: mallopt takes two numbers and no pointer; both settings say what is done with memory that
    // is freed from now on (mallopt(3)).
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST_BLOCK);
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(
    unsafe_code,
    reason = "no crate that we use offers malloc_trim; see SAFETY"
)]
fn give_back() {
    // SAFETY: malloc_trim takes a number and no pointer, may be called from any thread at any time,
    // and returns only pages that hold no live allocation (malloc_trim(3)).
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators give back by themselves or not at all.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn give_back() {}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn share_one_arena() {}

/// Lets the allocator keep what is freed; other allocators decide for themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_freed_memory() {}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    #[tokio::test(start_paused = true)]
    async fn who_comes_and_goes_while_a_session_runs_does_not_free_memory_all_the_time() {
        static WALKS: AtomicUsize = AtomicUsize::new(0);
        static BUSY: AtomicBool = AtomicBool::new(true);
        let walk = || {
            WALKS.fetch_add(1, Relaxed);
        };
        let gives_back = GivesBack::start_with(|| BUSY.load(Relaxed), walk);
        for _ in 0..20 {
            gives_back.soon();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        // Every two seconds it would be nine.
        assert_eq!(WALKS.load(Relaxed), 3);
        BUSY.store(false, Relaxed);
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(WALKS.load(Relaxed) > 3);
    }

    fn resident_kilobytes() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let digits = line.unwrap().split_whitespace().nth(1);
        digits.unwrap().parse().unwrap()
    }

    /// Set in the process that measures itself.
    const ALONE: &str = "HEDA_TEST_MEMORY_ALONE";

    /// The memory of a process is that of all its tests, so this one has a process to itself.
    #[test]
    fn what_was_freed_is_given_back() {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "system::memory::tests::measured_alone"])
            .args(["--ignored", "--nocapture"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("1 passed"), "nothing was measured: {said}");
    }

    /// 64 MB in pieces that are too small to be mapped one by one, and one that keeps the end of
    /// the arena in use: without the call they would stay.
    #[tokio::test]
    #[ignore = "measures its process; run by the test above"]
    async fn measured_alone() {
        assert!(std::env::var_os(ALONE).is_some(), "not in its own process");
        // As a daemon of the program is.
        keep_freed_memory();
        let pieces: Vec<Vec<u8>> = (0..16_384).map(|_| vec![1; 4096]).collect();
        let last = vec![1u8; 4096];
        let full = resident_kilobytes();
        drop(pieces);
        let kept = resident_kilobytes();
        assert!(
            full.saturating_sub(kept) < 16 << 10,
            "the test shows nothing: {full} {kept}"
        );
        let gives_back = GivesBack::start(|| false);
        gives_back.soon();
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if full.saturating_sub(resident_kilobytes()) > 48 << 10 {
                drop(last);
                return;
            }
        }
        panic!("{full} kB before, {} kB now", resident_kilobytes());
    }
}
