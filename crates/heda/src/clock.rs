//! Processor time: what work costs whatever else the machine does.

/// Processor time of this process so far, over all threads. Known on Linux only, in hundredths of
/// a second.
pub fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program comes before and may hold spaces; user and system time are the
    // 12th and 13th fields after it.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / 100.0)
}
