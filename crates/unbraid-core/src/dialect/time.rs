//! Times of creation in the format of RFC 3339 (O15).

/// The seconds since 1970; `None` for text of another format, and for earlier times.
pub(crate) fn unix_seconds(text: &str) -> Option<u64> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let mut date = date.splitn(3, '-').map(digits);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at_checked(zone)?;
    let clock = clock.split_once('.').map_or(clock, |(seconds, _)| seconds);
    let mut clock = clock.splitn(3, ':').map(digits);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let is_valid = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (1970..=9999).contains(&year)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !is_valid {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    u64::try_from(seconds - offset(zone)?).ok()
}

/// The time of these seconds since 1970; of the last second of the year 9999 for any later one.
#[must_use]
pub fn rfc3339(seconds: u64) -> String {
    const LAST: u64 = 253_402_300_799;
    let seconds = i64::try_from(seconds.min(LAST)).unwrap_or_default();
    let (days_since_1970, second) = (seconds / 86_400, seconds % 86_400);
    // The years from the latest one that can contain the day.
    let mut year = 1970 + days_since_1970 / 365;
    while days(year, 1, 1) > days_since_1970 {
        year -= 1;
    }
    let mut month = 12;
    while days(year, month, 1) > days_since_1970 {
        month -= 1;
    }
    let day = days_since_1970 - days(year, month, 1) + 1;
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let second = second % 60;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The days from 1970-01-01 to a date, by the years that begin in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    const TO_1970: i64 = 719_468;
    year * 365 + leap_days + day_of_year - TO_1970
}

/// The seconds that a zone is ahead.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return (zone.len() == 1).then_some(0),
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    Some(sign * (digits(hours)? * 3600 + digits(minutes)? * 60))
}

fn digits(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::{rfc3339, unix_seconds};

    #[track_caller]
    fn check(text: &str, expected: impl Into<Option<u64>>) {
        assert_eq!(unix_seconds(text), expected.into(), "{text}");
    }

    #[test]
    fn o15_times_are_read_with_any_fraction_and_zone() {
        check("1970-01-01T00:00:00Z", 0);
        check("2000-02-29T12:00:00.5Z", 951_825_600);
        check("2025-06-03T17:46:32.123456789Z", 1_748_972_792);
        check("2025-06-03T19:46:32.123456789+02:00", 1_748_972_792);
        check("2025-06-03t10:16:32-07:30", 1_748_972_792);
        check("2100-03-01T00:00:00Z", 4_107_542_400);
    }

    #[test]
    fn a_time_is_written_as_it_is_read() {
        for seconds in (0..253_402_300_799).step_by(86_400 * 13 + 12_345) {
            assert_eq!(unix_seconds(&rfc3339(seconds)), Some(seconds));
        }
        assert_eq!(rfc3339(951_825_600), "2000-02-29T12:00:00Z");
        assert_eq!(rfc3339(u64::MAX), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn o15_any_other_text_is_refused() {
        for text in [
            "",
            "now",
            "2025-06-03",
            "2025-06-03T17:46:32",
            "2025-13-03T17:46:32Z",
            "1969-12-31T23:59:59Z",
            "1970-01-01T00:00:00+01:00",
            "99999-01-01T00:00:00Z",
            "2025-06-03T17:46:3xZ",
            "2025-06-03T17:46:32Zulu",
        ] {
            check(text, None);
        }
    }
}
