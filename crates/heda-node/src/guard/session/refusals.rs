//! What a session does not do, in the ledger and in words for the data user.

use super::SessionGuard;
use crate::guard::JobRefusal;
use crate::guard::ledger::{JobKey, LedgerError, Whose};
use heda_job::error::ServeError;
use heda_job::guard::Refusal;
use std::sync::atomic::Ordering;

impl SessionGuard<'_> {
    /// Notes what the job itself refused, for reasons that the policy does not know.
    pub(in crate::guard) fn note_refusal(&self, error: &ServeError) {
        let reason = match error {
            ServeError::Denied(Refusal::Stopping) => return,
            ServeError::Denied(refusal) => refusal.to_string(),
            ServeError::Refused(reason) => reason.to_string(),
            _ => return,
        };
        if let (Some(job), false) = (self.job(), self.noted.load(Ordering::Relaxed)) {
            self.note(&job, &reason);
        }
    }

    /// Writes a refusal into the ledger.
    fn note(&self, job: &JobKey, reason: &str) {
        self.noted.store(true, Ordering::Relaxed);
        let noted = self.guard.ledger.refuse(job, &self.peer.label, reason);
        if let Err(error) = noted {
            tracing::error!(cause = %error, "a refusal could not be written down");
        }
    }

    /// Refuses, and notes it in the ledger.
    pub(super) fn refuse(&self, job: &JobKey, cause: JobRefusal) -> Refusal {
        self.note(job, &cause.to_string());
        Refusal::rule(cause)
    }

    /// Limits are told; failures of our own store are for the log.
    pub(super) fn ledger_refusal(&self, job: &JobKey, error: LedgerError) -> Refusal {
        if error.is_for_now() {
            // It will be asked for again, perhaps often: not worth a line in the ledger each time.
            self.noted.store(true, Ordering::Relaxed);
            return Refusal::Busy(self.told_of(error).into());
        }
        if error.is_refusal() {
            self.note(job, &error.to_string());
            return Refusal::rule(self.told_of(error));
        }
        // There is nowhere to note it.
        self.noted.store(true, Ordering::Relaxed);
        tracing::error!(cause = %error, "the ledger failed");
        Refusal::LedgerFailed
    }

    /// A refusal as the data user is told of it: what others have spent and set aside only if the
    /// policy says so.
    fn told_of(&self, error: LedgerError) -> JobRefusal {
        let whose = match &error {
            LedgerError::PrivateExhausted { whose, .. }
            | LedgerError::PrivateHeld { whose, .. } => *whose,
            _ => return error.into(),
        };
        match self.guard.policy.limits.privacy_room_told || whose == Whose::User {
            true => error.into(),
            false => JobRefusal::NoRoom,
        }
    }
}
