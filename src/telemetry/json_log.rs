//! Formats a log line as one JSON object, with lists as arrays.

use jiff::Timestamp;
use serde_json::Value;
use std::fmt::{self, Debug};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The field with the text of a line.
const MESSAGE: &str = "message";
/// Prefix of fields that a library of the crate `log` adds about itself.
const OF_LOG: &str = "log.";

/// The format of `--log-format=json`.
#[derive(Clone, Copy, Debug)]
pub struct JsonLog;

impl<S, N> FormatEvent<S, N> for JsonLog
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let target = fields.log_target.as_deref().unwrap_or(metadata.target());
        write!(
            writer,
            "{{\"timestamp\":\"{:.6}\",\"level\":\"{}\"",
            Timestamp::now(),
            metadata.level()
        )?;
        let message = (MESSAGE, fields.message.unwrap_or_default());
        for (name, value) in [message].into_iter().chain(fields.others) {
            write!(writer, ",{}:{value}", Value::from(name))?;
        }
        writeln!(writer, ",\"target\":{}}}", Value::from(target))
    }
}

/// The fields of a line.
#[derive(Default)]
struct Fields {
    message: Option<Value>,
    others: Vec<(&'static str, Value)>,
    log_target: Option<String>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        match field.name() {
            MESSAGE => self.message = Some(value),
            "log.target" => self.log_target = value.as_str().map(str::to_string),
            name if name.starts_with(OF_LOG) => {}
            name => self.others.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    /// A list of strings or numbers is the same text in Rust and in JSON.
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        let list = (field.name() != MESSAGE && text.starts_with('['))
            .then(|| serde_json::from_str::<Vec<Value>>(&text).ok())
            .flatten();
        self.add(field, list.map_or_else(|| text.into(), Value::Array));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex, PoisonError};
    use tracing_subscriber::fmt::layer;
    use tracing_subscriber::prelude::*;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_one_json_object_with_lists_as_arrays() -> Result<(), serde_json::Error> {
        let log = Log::default();
        let writer = log.clone();
        let lines = layer().event_format(JsonLog).with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            let pods = ["a", "b\"c"];
            let pool: Option<&str> = None;
            tracing::warn!(claim = %"ns/run", pods = ?pods, count = 2, warm = true, pool, "claim\n{}", "bound");
            tracing::info!(error = %"[] is no list of [x]", "[1]");
        });
        let bytes = log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let [first, second] = lines.as_slice() else {
            return Err(serde::de::Error::custom(format!("{lines:?}")));
        };
        assert_eq!(first["pods"], serde_json::json!(["a", "b\"c"]));
        let values =
            ["level", "message", "claim", "target"].map(|name| first[name].as_str().unwrap_or_default());
        assert_eq!(
            values,
            [
                "WARN",
                "claim\nbound",
                "ns/run",
                "warmpool::telemetry::json_log::tests"
            ]
        );
        assert_eq!(
            (&first["count"], &first["warm"], first.get("pool")),
            (&2.into(), &true.into(), None)
        );
        let timestamp: Option<Timestamp> = first["timestamp"].as_str().and_then(|at| at.parse().ok());
        assert!(timestamp.is_some(), "{first}");
        assert_eq!(
            (&second["message"], &second["error"]),
            (&"[1]".into(), &"[] is no list of [x]".into())
        );
        Ok(())
    }
}
