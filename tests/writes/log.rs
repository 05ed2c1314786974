//! The log of the operator, as a test reads it.

use serde_json::Value;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use tracing::Level;
use tracing::subscriber::DefaultGuard;

/// The log as JSON lines.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// What this thread logs while the guard lives.
    pub fn of_this_thread() -> (Self, DefaultGuard) {
        let log = Self::default();
        let kept = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(Level::DEBUG)
            .with_writer(move || kept.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The lines at this level whose message begins with these words.
    pub fn lines(&self, level: &str, words: &str) -> Vec<Value> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let says = |line: &Value| {
            line["message"]
                .as_str()
                .is_some_and(|said| said.starts_with(words))
        };
        lines
            .filter(|line| line["level"] == level && says(line))
            .collect()
    }
}
