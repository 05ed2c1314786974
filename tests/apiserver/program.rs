//! Runs programs and keeps what they print.

use crate::signal;
use crate::wait;
use std::fs;
use std::process::{Child, Command, Output, Stdio};
use tempfile::NamedTempFile;

/// What a program came to.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl CommandOutput {
    /// It succeeded and said exactly this, with nothing on stderr.
    pub fn is(&self, out: &str) -> Result<(), String> {
        let same = self.code == Some(0) && self.out == out && self.err.is_empty();
        wait::ensure(same, || format!("expected {out:?}, got {self:?}"))
    }

    /// It succeeded, and printed only this on stderr.
    pub fn says_nothing_but(&self, err: &str) -> Result<(), String> {
        let same = self.code == Some(0) && self.out.is_empty() && self.err == err;
        wait::ensure(same, || format!("expected the note {err:?}, got {self:?}"))
    }

    /// It failed with this on stderr.
    pub fn fails(&self, err: &str) -> Result<(), String> {
        let same = self.code == Some(1) && self.err == err;
        wait::ensure(same, || format!("expected the failure {err:?}, got {self:?}"))
    }

    /// It followed a rollout to a good end, saying nothing twice.
    pub fn ends_with(&self, last: &str) -> Result<Vec<&str>, String> {
        let lines: Vec<&str> = self.out.lines().collect();
        let once = lines.windows(2).all(|two| two[0] != two[1]);
        let good = self.code == Some(0) && self.err.is_empty() && lines.last() == Some(&last) && once;
        wait::ensure(good, || format!("expected the end {last:?}, got {self:?}"))?;
        Ok(lines)
    }
}

/// A running program. Dropping it kills the process.
pub struct Running {
    program: String,
    child: Option<Child>,
    /// What it prints goes here, and can be read meanwhile.
    out: NamedTempFile,
}

impl Running {
    /// Starts the program.
    pub fn start(mut command: Command) -> Result<Self, String> {
        let program = command.get_program().to_string_lossy().into_owned();
        let out = NamedTempFile::new().map_err(|e| e.to_string())?;
        let to = out.reopen().map_err(|e| e.to_string())?;
        let child = command.stdout(to).stderr(Stdio::piped()).spawn();
        let child = Some(child.map_err(|e| format!("{program} does not start: {e}"))?);
        Ok(Self { program, child, out })
    }

    /// Waits until it has printed something, as `rollout status` does when it has read the pool.
    pub fn has_begun(&self) -> Result<(), String> {
        wait::until(&format!("{} had printed something", self.program), 60, || {
            wait::ensure(!self.printed()?.is_empty(), || "nothing".into())
        })
    }

    fn printed(&self) -> Result<String, String> {
        fs::read_to_string(self.out.path()).map_err(|e| e.to_string())
    }

    /// Sends it a signal, as in `INT`.
    pub fn signal(&self, name: &str) -> Result<(), String> {
        let child = self.child.as_ref().ok_or("it has ended before")?;
        signal::send(child.id(), name)
    }

    /// Waits until it has ended by itself.
    pub fn end(mut self) -> Result<CommandOutput, String> {
        wait::until(&format!("{} had ended", self.program), 60, || {
            match &mut self.child {
                Some(child) => match child.try_wait().map_err(|e| e.to_string())? {
                    Some(_) => Ok(()),
                    None => Err("it runs".into()),
                },
                None => Ok(()),
            }
        })?;
        let child = self.child.take().ok_or("it has ended before")?;
        let output = child.wait_with_output().map_err(|e| e.to_string())?;
        let out = self.printed()?;
        Ok(CommandOutput {
            out,
            ..CommandOutput::from(output)
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            _ = child.kill();
            _ = child.wait();
        }
    }
}
