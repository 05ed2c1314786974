//! The flag `--dry-run`.

use clap::ValueEnum;

/// Whether an object is written, as in kubectl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DryRun {
    /// Write it
    None,
    /// Print what would be written, and send no write
    Client,
    /// Have the API server validate the write without storing it
    Server,
}

impl DryRun {
    /// Printed after the outcome.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Client => " (dry run)",
            Self::Server => " (server dry run)",
        }
    }
}
