//! What is fuzzed. One entry here per target gives it a name and a test, and says which
//! functions of the workspace it reaches.

use crate::corpus::Corpus;
use crate::driver::Target;

mod channel;
mod in_file;
mod job;
mod masking;
mod node;
mod paillier;
mod text;
mod transfer;
mod values;

macro_rules! targets {
    ($($name:ident => $make:path, $decoders:expr;)+) => {
        /// All targets: their names and the functions that they reach.
        pub const TARGETS: &[(&str, &[&str])] = &[$((stringify!($name), &$decoders)),+];

        /// The target with this name, with its corpus.
        pub fn find(name: &str) -> Option<Target> {
            let target = match name {
                $(stringify!($name) => $make(),)+
                _ => return None,
            };
            let corpus = Corpus::of(name).expect("the corpus can be read");
            Some(target.with_corpus(corpus))
        }

        #[cfg(test)]
        mod short_runs {
            $(#[test]
            fn $name() {
                super::short_run(super::find(stringify!($name)).unwrap());
            })+
        }
    };
}

targets! {
    answer => node::answer, [
        "heda-node Answer::in_folder",
        "heda-node Answer::load",
        "heda-node config::read_text",
    ];
    channel => channel::messages, [];
    charge => node::charge_json, ["heda-node report::budget"];
    checkpoint => node::checkpoint, [
        "heda-node StateFile::resume",
        "heda-node files::read_bounded",
        "heda-node state::read",
    ];
    columns => text::columns_in_memory, [
        "heda-learn TableReader::read_columns",
        "heda-learn TableReader::read_rows_columns",
        "heda-learn infer::propose_columns",
    ];
    csv => text::csv, [
        "heda-learn CsvFormat::complete",
        "heda-learn CsvSource::open",
        "heda-learn TableReader::read_csv",
        "heda-learn TableReader::read_rows_csv",
        "heda-learn csv::head",
    ];
    csv_proposal => text::csv_proposal, ["heda-learn infer::propose_csv"];
    delta => values::delta, ["heda-dp Delta::from_str"];
    epsilon => values::epsilon, ["heda-dp Epsilon::from_str"];
    fingerprint => node::fingerprint, ["heda-node PeerFingerprint::from_str"];
    frame => node::frame, ["heda-node Greeting::from_bytes", "heda-node Head::from_bytes"];
    identity_certificate => node::identity_certificate, [
        "heda-node Identity::load",
        "heda-node PeerFingerprint::of_certificate",
        "heda-node Trust::identify",
        "heda-node dates::validity",
        "heda-node identity::load_certificates",
    ];
    identity_key => node::identity_key, ["heda-node Identity::load", "heda-node identity::load_key"];
    invitation => node::invitation, [
        "heda-node Invitation::load",
        "heda-node config::read_text",
    ];
    iota => values::iota, ["heda-learn Iota::from_str"];
    iterations => values::iterations, ["heda-learn Iterations::from_str"];
    job_file => node::job_file, ["heda-node JobConfig::load", "heda-node JobConfig::load_early", "heda-node JobConfig::load_with"];
    job_name => values::job_name, ["heda-job JobId::from_str", "heda-job codec::unhex"];
    anchor => node::anchor, [
        "heda-node Anchor::read",
        "heda-node Ledger::open",
        "heda-node LedgerReader::open",
        "heda-node anchor::newest",
        "heda-node open::open_file",
    ];
    key_exchange => node::key_exchange, [
        "heda-node Hybrid::start_and_complete",
        "heda-node Started::complete",
    ];
    ledger => node::ledger, [
        "heda-node LedgerReader::open",
        "heda-node report::budget",
        "heda-node chain::verify",
        "heda-node chain::beginning",
        "heda-node Epoch::from_str",
        "heda-node hexadecimal::unhex",
    ];
    mask_announcements => masking::announcements, ["heda-crypto MaskSetup::finish"];
    mask_origin => masking::origin, ["heda-crypto Roster::announced_origin"];
    model => text::model, ["heda-learn Model::from_json"];
    model_file => text::model_file, ["heda-learn Model::read"];
    names => values::names, [
        "heda-learn Bundle::from_str",
        "heda-learn Coding::from_str",
        "heda-learn TextEncoding::from_str",
        "heda-learn SeparatorMark::from_str",
        "heda-learn ScoringMethod::from_str",
        "heda-job Name::from_str",
        "heda-job Engine::from_str",
    ];
    paillier_ciphertexts => paillier::ciphertexts, ["heda-paper PublicKey::decode"];
    paillier_private_key => paillier::private_key, ["heda-paper PrivateKey::from_bytes"];
    paillier_public_key => paillier::public_key, ["heda-paper PublicKey::from_bytes"];
    parquet => text::parquet, [
        "heda-learn ParquetSource::open",
        "heda-learn TableReader::read_file",
        "heda-learn TableReader::read_rows_file",
        "heda-learn infer::propose",
        "heda-learn table::open",
    ];
    persons => text::persons, ["heda-learn TableReader::read_persons"];
    provider_file => node::provider_file, [
        "heda-node ProviderConfig::load",
    ];
    rsa_ciphertexts => paillier::rsa_ciphertexts, ["heda-paper RsaPublicKey::decode"];
    rsa_private_key => paillier::rsa_private_key, ["heda-paper RsaPrivateKey::from_bytes"];
    rsa_public_key => paillier::rsa_public_key, ["heda-paper RsaPublicKey::from_bytes"];
    schema => text::schema, [
        "heda-learn Schema::parse",
        "heda-learn raw::offset_of",
        "heda-learn raw::parse",
    ];
    schema_file => text::schema_file, [
        "heda-learn Schema::read",
        "heda-learn Schema::read_with_text",
        "heda-learn raw::read",
    ];
    share => values::share, ["heda-job Share::from_str"];
    job_chosen_to_user => job::chosen_user, ["heda-job RankingUser::chosen_by"];
    job_paper_to_provider => job::paper_provider, ["heda-paper provider::read_paillier_key"];
    job_paper_to_user => job::paper_user, ["heda-paper Dictionary::decode"];
    job_resident_to_provider => job::resident_provider, [
        "heda-crypto bits::unpack",
        "heda-job Announcements::decode",
        "heda-job Message::decode",
        "heda-job Proposal::decode",
        "heda-job ProviderAnswered::pay",
        "heda-job ProviderBorrowed::lanes",
        "heda-job ProviderLaned::count",
        "heda-job ProviderReady::answer",
        "heda-job ProviderReady::borrow",
        "heda-job ProviderSession::ready",
        "heda-job SentColumns::masks",
        "heda-job message::from_json",
        "heda-job payload::read",
    ];
    job_resident_to_user => job::resident_user, [
        "heda-job Contribution::decode",
        "heda-job Offer::read",
        "heda-job Release::decode",
        "heda-job Sums::decode",
        "heda-job UserPreprocessed::open",
        "heda-job UserAsked::choose",
        "heda-job UserBorrowing::ask_lane",
        "heda-job UserChosen::open",
        "heda-job UserCounting::counts",
        "heda-job UserLaning::choose",
        "heda-job UserSum::close",
        "heda-job rows::release_from_bytes",
    ];
    transfer_bit_corrections => transfer::bit_corrections, [
        "heda-crypto BitCorrections::from_bytes",
    ];
    transfer_bit_request => transfer::bit_request, [
        "heda-crypto BitRequest::from_bytes",
        "heda-crypto Request::from_bytes",
    ];
    transfer_index_corrections => transfer::index_corrections, [
        "heda-crypto IndexCorrections::from_bytes",
    ];
    transfer_index_request => transfer::index_request, ["heda-crypto IndexRequest::from_bytes"];
    transfer_setup_first => transfer::setup_first, [
        "heda-crypto SetupFirst::from_bytes",
        "heda-crypto Point::decode",
    ];
    transfer_setup_second => transfer::setup_second, ["heda-crypto SetupSecond::from_bytes"];
    transfer_setup_third => transfer::setup_third, ["heda-crypto SetupThird::from_bytes"];
    transfer_tree_offers => transfer::tree_offers, ["heda-crypto TreeOffers::from_bytes"];
}

/// Runs a target briefly: everything planned was executed, and something was refused.
#[cfg(test)]
fn short_run(target: Target) {
    let planned = target.short_run;
    match crate::short_run::run(&target) {
        Err(failure) => panic!("{failure}"),
        Ok(summary) => {
            assert_eq!(summary.accepted + summary.rejected, planned);
            assert!(summary.rejected > 0, "nothing was refused");
        }
    }
}
