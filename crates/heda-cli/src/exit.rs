//! What the command line adds to errors of the library: an exit code, and the flags of a remedy.

use heda::{Error, ErrorKind, Remedy};

/// The documented exit code.
pub(crate) fn code(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::Input => 2,
        ErrorKind::Refused => 3,
        ErrorKind::Peer => 4,
        ErrorKind::Resumable => 5,
        _ => 70,
    }
}

/// What happened, and what to type.
pub(crate) fn words(error: &Error) -> String {
    let what = error.what();
    match error.remedy().map(flags) {
        Some(flags) => format!("{what}; {flags}"),
        None => what.to_string(),
    }
}

/// The remedy by the flags of the commands.
fn flags(remedy: Remedy) -> String {
    let flags = match remedy {
        Remedy::Resume => "put this right and run again with --resume",
        Remedy::ResumeOrOtherFolder => "go on with --resume, or choose another --out",
        Remedy::StartAfresh => "start without --resume",
        Remedy::StartElsewhere => "start afresh in another --out",
        Remedy::WaitOrOtherFolder => "wait for its end, or choose another --out",
        Remedy::OtherFolder => "choose another folder by --out",
        Remedy::ConfirmSchema => {
            "replace it by what is publicly known and delete the marks, or say --unconfirmed"
        }
        Remedy::StateEncoding => {
            "if it is in Latin-1 (as from older Excel on Windows), say so by `--encoding latin-1` or \
             in provider.toml by `csv = { encoding = \"latin-1\" }`"
        }
        Remedy::GiveAnswers => "give their folder: `heda train JOB --answers FOLDER`",
        Remedy::StateRows => "give --rows",
        Remedy::GiveRows => "give --data",
        Remedy::AllowExact => {
            "ask for a private one (`heda invite --private 1 --rows N`), or serve exact sums by \
             --allow-exact"
        }
        Remedy::AllowEpsilon(epsilon) => {
            return format!(
                "ask for a job with a smaller one, or allow it by --privacy-epsilon {epsilon}"
            );
        }
        other => return other.to_string(),
    };
    flags.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_told_by_its_flags() {
        let lost = Error::new(ErrorKind::Resumable, "the disk is full").with_remedy(Remedy::Resume);
        assert_eq!(
            words(&lost),
            "the disk is full; put this right and run again with --resume"
        );
        assert_eq!(words(&Error::input("no rows")), "no rows");
        assert_eq!([code(&lost), code(&Error::bug("x"))], [5, 70]);
    }
}
