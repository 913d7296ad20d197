//! What one model, a class against the rest, came to on held-out rows.

use super::ClassResult;
use heda_train::histogram::Histogram;
use heda_train::job::ClassFit;

pub(super) fn class_result(fit: &ClassFit, names: &[String]) -> ClassResult {
    let histogram = fit.histogram.as_ref();
    let name = names.get(fit.positive as usize);
    ClassResult {
        class: name.cloned().unwrap_or_else(|| fit.positive.to_string()),
        accuracy: histogram.and_then(|h| h.confusion().accuracy()),
        confusion: histogram.map(Histogram::confusion),
        auc: histogram
            .and_then(Histogram::auc_bounds)
            .map(|(low, high)| [low, high]),
        majority_accuracy: histogram.and_then(majority),
    }
}

fn majority(histogram: &Histogram) -> Option<f64> {
    let positives: u64 = histogram.positives.iter().sum();
    let negatives: u64 = histogram.negatives.iter().sum();
    let all = positives + negatives;
    (all > 0).then(|| positives.max(negatives) as f64 / all as f64)
}
