//! A minimum size by time of day: a cron schedule, its time zone, and how long each of its times counts.

use crate::api::autoscaling::Schedule as WrittenSchedule;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};

/// A century before the last year that the library searches, 4900. A date that comes at all comes within it, and whoever
/// asks for the 30th of February must not wait until every year was tried.
const LATE: Timestamp = Timestamp::constant(92_461_910_400, 0);

/// A schedule of a pool, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its name.
    pub name: String,
    /// Least unclaimed sandboxes while it is active.
    pub min_replicas: usize,
    cron: Cron,
    zone: TimeZone,
    duration: SignedDuration,
}

/// Whether a schedule is active at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// It is active.
    pub is_active: bool,
    /// When that may change; `None`: never.
    pub until: Option<Timestamp>,
}

impl Schedule {
    /// Parses the schedule that stands at `field`.
    ///
    /// # Errors
    /// A sentence that names the field and says what to write instead.
    pub fn parse(field: &str, written: &WrittenSchedule) -> Result<Self, String> {
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let text = written.schedule.trim();
        // The parser takes a list without a value for one that never comes, and searches for it hour by hour.
        if text.split_whitespace().any(has_empty_item) {
            return Err(format!(
                "{field}.schedule: {text:?} has a list with an empty item; write it like \"0 8,20 * * *\""
            ));
        }
        let cron = parser.parse(text).map_err(|error| {
            format!("{field}.schedule: {text:?} is not a cron schedule like \"0 8 * * 1-5\": {error}")
        })?;
        let zone = TimeZone::get(&written.time_zone).map_err(|_| {
            format!(
                "{field}.timeZone: {:?} is not a time zone of the IANA database like \"Europe/Berlin\"",
                written.time_zone
            )
        })?;
        let min_replicas = usize::try_from(written.min_replicas).map_err(|_| {
            format!(
                "{field}.minReplicas: {} is negative; write 0 or more",
                written.min_replicas
            )
        })?;
        if written.duration_seconds < 1 {
            return Err(format!(
                "{field}.durationSeconds: {} is too small; write 1 or more",
                written.duration_seconds
            ));
        }
        let schedule = Self {
            name: written.name.clone(),
            min_replicas,
            cron,
            zone,
            duration: SignedDuration::from_secs(written.duration_seconds.into()),
        };
        if schedule.next_after(LATE).is_none() {
            return Err(format!(
                "{field}.schedule: {text:?} never comes; write a date that exists"
            ));
        }
        Ok(schedule)
    }

    /// Whether the schedule is active at `now`.
    pub fn at(&self, now: Timestamp) -> Activity {
        let begins = now
            .checked_sub(self.duration)
            .ok()
            .and_then(|from| self.next_after(from))
            .filter(|begins| *begins <= now);
        match begins {
            Some(begins) => Activity {
                is_active: true,
                until: begins.checked_add(self.duration).ok(),
            },
            None => Activity {
                is_active: false,
                until: self.next_after(now),
            },
        }
    }

    /// The first time of the schedule after `moment`. A time that a change of the clocks skips counts as the moment of the
    /// change.
    fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        let next = |from| self.cron.find_next_occurrence(&from, false).ok();
        let local = moment.to_zoned(self.zone.clone());
        // The library skips such a time if the schedule has others on that day. In UTC no time is skipped.
        let written = next(local.datetime().to_zoned(TimeZone::UTC).ok()?);
        let is_skipped = |time: &Zoned| {
            let offset = self.zone.to_ambiguous_timestamp(time.datetime()).offset();
            matches!(offset, AmbiguousOffset::Gap { .. })
        };
        let change = written
            .filter(is_skipped)
            .and_then(|_| self.zone.following(moment).next());
        let next = next(local).map(|next| next.timestamp());
        [next, change.map(|change| change.timestamp())]
            .into_iter()
            .flatten()
            .min()
    }
}

/// Whether a field of a cron schedule is a list with an empty item, as in `8,,20`.
fn has_empty_item(field: &str) -> bool {
    field.split(',').any(str::is_empty)
}
