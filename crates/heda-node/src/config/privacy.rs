//! `[privacy]` of a job: what everything that the job reveals keeps to.

use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Delta;
use heda_job::proposal::Privacy;
use heda_learn::schema::Schema;
use serde::Serialize;
use std::num::NonZeroU64;

heda_learn::described! {
    /// The guarantee of a private job.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize)]
    pub struct PrivacyConfig {
        /// Epsilon of everything that the job reveals of a row.
        #[key("1")]
        pub epsilon: Epsilon,
        /// Delta of the guarantee; by default the largest power of ten that is at most 1e-5 and at
        /// most 1/(10·rows).
        #[key("1e-5")]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub delta: Option<Delta>,
        /// About how many training rows all providers have together; the number of iterations follows
        /// from it, the guarantee does not depend on it.
        #[key("30000")]
        pub rows: NonZeroU64,
        /// How many other providers each provider counts on for noise; by default all but one of the
        /// others. With 0 its own noise suffices. A smaller number costs accuracy.
        #[key("0")]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub trusted: Option<u32>,
        /// Whether a twentieth of the guarantee pays for means and standard deviations, with noise, of
        /// the numbers for which the schema has no `typical`; with `false` the middle of the bounds
        /// is used.
        #[key("false")]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub moments: Option<bool>,
    }
}

impl PrivacyConfig {
    /// δ, stated or by the number of rows.
    pub fn delta(&self) -> Delta {
        self.delta
            .unwrap_or_else(|| Delta::default_for(self.rows.get()))
    }

    /// What is proposed to the providers, for rows of this schema.
    pub fn promise(&self, schema: &Schema) -> Privacy {
        let promise = Privacy {
            trusted: self.trusted,
            ..Privacy::new(self.epsilon, self.delta(), self.rows.get())
        };
        let suited = promise.suited(schema);
        match self.moments {
            Some(false) => Privacy {
                moments: 0,
                ..suited
            },
            _ => suited,
        }
    }

    /// What deserves a second thought.
    pub fn warning(&self) -> Option<String> {
        let (delta, rows) = (self.delta(), self.rows.get());
        delta.is_generous(rows).then(|| {
            format!(
                "delta {delta} is much for {rows} rows: the promise may fail for a row with this \
                 probability; {} would do",
                Delta::default_for(rows)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{JobConfig, ProviderConfig};

    const JOB: &str = include_str!("../../tests/files/job.toml");
    const PROVIDER: &str = include_str!("../../tests/files/provider.toml");

    fn written(name: &str, text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    /// The sample as a private job, with these lines under `[privacy]` and this one before.
    fn job(line: &str, privacy: &str) -> Result<JobConfig, String> {
        let plain = JOB.replace("iota = 5\n", "").replace("epsilon = 1.5\n", "");
        let text = plain.replacen(
            "[timeouts]",
            &format!("{line}\n[privacy]\n{privacy}\n\n[timeouts]"),
            1,
        );
        let (_folder, path) = written("job.toml", &text);
        JobConfig::load(&path).map_err(|e| e.to_string())
    }

    #[test]
    fn a_private_job_needs_an_epsilon_and_its_rows() {
        let config = job("", "epsilon = 1\nrows = 30000").unwrap();
        let promise = config.privacy.unwrap();
        assert_eq!((promise.delta().get(), promise.trusted), (1e-6, None));
        assert!(config.privacy.unwrap().warning().is_none());
        for (privacy, word) in [
            ("rows = 30000", "epsilon"),
            ("epsilon = 1", "rows"),
            ("epsilon = 0\nrows = 9", "above 0"),
            ("epsilon = -1\nrows = 9", "above 0"),
            ("epsilon = nan\nrows = 9", "line "),
            ("epsilon = inf\nrows = 9", "line "),
            ("epsilon = 1\nrows = 0", "line "),
            ("epsilon = 1\nrows = 9\ndelta = 0", "above 0 and below 1"),
            ("epsilon = 1\nrows = 9\ndelta = 0.0", "above 0 and below 1"),
            (
                "epsilon = 1\nrows = 9\ndelta = -1e-5",
                "above 0 and below 1",
            ),
            ("epsilon = 1\nrows = 9\ndelta = nan", "above 0 and below 1"),
            ("epsilon = 1\nrows = 9\ndelta = inf", "above 0 and below 1"),
            ("epsilon = 1\nrows = 9\ndelta = 1.0", "above 0 and below 1"),
            ("epsilon = 1\nrows = 9\ntrusted = -1", "line "),
        ] {
            let error = job("", privacy).unwrap_err();
            assert!(error.contains(word), "{privacy}: {error}");
        }
    }

    #[test]
    fn a_generous_delta_is_warned_of() {
        let at = |delta: &str| {
            let config = job("", &format!("epsilon = 1\nrows = 1000\ndelta = {delta}"));
            config.unwrap().privacy.unwrap().warning()
        };
        assert_eq!(at("1e-4"), None, "a tenth of a row's share");
        assert!(at("2e-4").unwrap().contains("much for 1000 rows"));
    }

    #[test]
    fn limits_of_private_jobs_belong_together() {
        let provider = |lines: &str| {
            let text = PROVIDER.replacen("[limits]", &format!("[limits]\n{lines}"), 1);
            let (_folder, path) = written("provider.toml", &text);
            ProviderConfig::load(&path).map_err(|e| e.to_string())
        };
        let good = "privacy_required = true\nprivacy_epsilon_total = 2\nprivacy_delta = 1e-6";
        let cap = provider(good).unwrap().limits.private_cap().unwrap();
        assert_eq!(cap.epsilon, cap.per_user);
        assert!(provider("").unwrap().limits.private_cap().is_none());
        for (lines, word) in [
            (
                "privacy_required = true",
                "privacy_epsilon_total and privacy_delta",
            ),
            ("privacy_epsilon_total = 2", "lack `privacy_delta`"),
            ("privacy_delta = 1e-6", "lack `privacy_epsilon_total`"),
            ("privacy_epsilon_total = 0\nprivacy_delta = 1e-6", "above 0"),
            ("privacy_epsilon_total = 2\nprivacy_delta = 2", "below 1"),
            (
                "privacy_epsilon_total = 2\nprivacy_delta = 1e-6\nprivacy_epsilon_per_user = 3",
                "all data users together may have 2",
            ),
        ] {
            let error = provider(lines).unwrap_err();
            assert!(error.contains(word), "{lines}: {error}");
        }
    }
}
