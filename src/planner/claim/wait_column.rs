//! How the column WAIT of a claim shows the time that it waited.

use jiff::SignedDuration;

/// A time for the column WAIT: `12ms`, `3.4s`, `2m5s`.
pub(crate) fn duration(waited: SignedDuration) -> String {
    let milliseconds = waited.as_millis();
    match milliseconds {
        ..1_000 => format!("{milliseconds}ms"),
        1_000..60_000 => format!("{}.{}s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => format!("{}m{}s", milliseconds / 60_000, milliseconds / 1_000 % 60),
    }
}
