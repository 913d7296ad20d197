//! Dates and times as days since 1970-01-01, and back.
//!
//! Written as `2024-12-31`, `31.12.2024` or `2024/12/31`, with a time of day after a space or `T`
//! (`12:30`, `12:30:15`, `12:30:15.5`) and an offset (`Z`, `+01:00`) if wanted. `12/31/2024` is not
//! read: one country means the month by its first number and another the day.

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Days since 1970-01-01, with the time of day as a fraction to the second; `None` if the text is
/// no date.
pub fn days(text: &str) -> Option<f64> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time.trim())),
        None => (text, None),
    };
    let (year, month, day) = parts(date)?;
    let seconds = time.map_or(Some(0), seconds_of_day)?;
    Some((days_from_civil(year, month, day)? * DAY + seconds) as f64 / DAY as f64)
}

/// Days as a date, with the time of day unless it is midnight. [`days`] reads it back, to the
/// second.
pub fn text(days: f64) -> String {
    let seconds = (days * DAY as f64).round() as i64;
    let (year, month, day) = civil_from_days(seconds.div_euclid(DAY));
    let date = format!("{year:04}-{month:02}-{day:02}");
    match seconds.rem_euclid(DAY) {
        0 => date,
        rest => format!(
            "{date}T{:02}:{:02}:{:02}",
            rest / 3600,
            rest / 60 % 60,
            rest % 60
        ),
    }
}

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let right = text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    right.then(|| text.parse().ok())?
}

/// Year, month and day.
fn parts(date: &str) -> Option<(i64, i64, i64)> {
    let separator = ['-', '.', '/'].into_iter().find(|&s| date.contains(s))?;
    let mut fields = date.split(separator);
    let (first, second, third) = (fields.next()?, fields.next()?, fields.next()?);
    if fields.next().is_some() {
        return None;
    }
    let (year, month, day) = match separator {
        '.' => (third, second, first),
        _ => (first, second, third),
    };
    Some((digits(year, 4)?, digits(month, 2)?, digits(day, 2)?))
}

/// Seconds since midnight in UTC; negative or more than a day where the offset says so.
fn seconds_of_day(time: &str) -> Option<i64> {
    let zone = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (clock, offset) = time.split_at(zone);
    let mut fields = clock.split(':');
    let hour = digits(fields.next()?, 2).filter(|hour| *hour < 24)?;
    let minute = digits(fields.next()?, 2).filter(|minute| *minute < 60)?;
    let second = match fields.next() {
        None => 0,
        Some(second) => {
            let (whole, part) = second.split_once('.').unwrap_or((second, "0"));
            let fraction = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            // 60 is a leap second.
            digits(whole, 2).filter(|s| fraction && *s <= 60)?
        }
    };
    if fields.next().is_some() {
        return None;
    }
    Some(hour * 3600 + minute * 60 + second - offset_seconds(offset)?)
}

fn offset_seconds(offset: &str) -> Option<i64> {
    let sign = match offset.chars().next() {
        None => return Some(0),
        Some('Z') => return (offset == "Z").then_some(0),
        Some('-') => -1,
        Some(_) => 1,
    };
    let (hours, minutes) = match offset[1..].split_once(':') {
        Some(both) => both,
        None if offset.len() == 5 => offset[1..].split_at_checked(2)?,
        None => (&offset[1..], "00"),
    };
    let hours = digits(hours, 2).filter(|hours| *hours <= 14)?;
    Some(sign * (hours * 3600 + digits(minutes, 2).filter(|m| *m < 60)? * 60))
}

/// Days since 1970-01-01 in the Gregorian calendar; `None` if there is no such day. Counted in
/// years that begin in March, so that a leap day is the last day of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    let length = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let from_march = (month + 9) % 12;
    let year = year - i64::from(month <= 2);
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    // 719 468 days lie between 1 March of the year 0 and 1970-01-01.
    Some(365 * year + leap_days + day_of_year - 719_468)
}

/// Year, month and day of a day since 1970-01-01.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let before = 365 * year_of_era + year_of_era / 4 - year_of_era / 100;
    let day_of_year = day_of_era - before;
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        assert_eq!(days("1970-01-01"), Some(0.0));
        assert_eq!(days("2000-02-29"), Some(11_016.0));
        assert_eq!(days("31.12.1969"), Some(-1.0));
        assert_eq!(days("2024/01/01"), Some(19_723.0));
        assert_eq!(days("1970-01-02T12:00"), Some(1.5));
        assert_eq!(days("1970-01-02 06:00:00.25Z"), Some(1.25));
        assert_eq!(days("1970-01-01T01:00:00+01:00"), Some(0.0));
        assert_eq!(days("1970-01-01T00:00-0600"), Some(0.25));
    }

    #[test]
    fn every_day_of_four_centuries_comes_back() {
        for day in (days("1800-01-01").unwrap() as i64)..=(days("2200-12-31").unwrap() as i64) {
            assert_eq!(days(&text(day as f64)), Some(day as f64));
        }
        let noon = days("2024-12-31T12:34:56").unwrap();
        assert_eq!(text(noon), "2024-12-31T12:34:56");
        assert_eq!(days(&text(noon)), Some(noon));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for wrong in [
            "",
            "2024",
            "2024-02-30",
            "1900-02-29",
            "2024-13-01",
            "12/31/2024",
            "2024-1-1",
            "2024-01-01-01",
            "2024-01-01T25:00",
            "2024-01-01T10",
            "2024-01-01T10:00:00.",
            "2024-01-01T10:00+15:00",
            "2024-01-01T10:00+é",
            "2024-01-01T10:00+aé1",
            "99999-01-01",
            "a-b-c",
            "1.5",
        ] {
            assert_eq!(days(wrong), None, "{wrong}");
        }
    }
}
