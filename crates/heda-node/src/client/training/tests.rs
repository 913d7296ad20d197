//! What is waited for.

use super::*;
use heda_blocks::stop::StopCode;

/// Words that promise the opposite of the code.
fn stopped(code: StopCode) -> Result<LostProvider, NetworkJobError> {
    let words = "refused: this provider is stopping; resume the job when it is back";
    let stop = ChannelError::PeerStopped(Stop::new(code, words));
    judge("ward".into(), stop.into())
}

#[test]
fn whether_to_wait_hangs_on_the_code_of_a_stop_and_not_on_its_words() {
    for code in [StopCode::Stopping, StopCode::StoreFailed, StopCode::Busy] {
        assert!(stopped(code).is_ok_and(|loss| !loss.waited), "{code:?}");
    }
    for code in [
        StopCode::Refused,
        StopCode::Version,
        StopCode::Protocol,
        StopCode::Failed,
        StopCode::Unknown,
    ] {
        let refused = stopped(code);
        assert!(matches!(refused, Err(NetworkJobError::Refused { stop, .. }) if stop.code == code));
    }
}
