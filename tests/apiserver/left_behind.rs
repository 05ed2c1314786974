//! Ends and removes the clusters that earlier runs of the tests left behind, except those of the latest failed runs.

use crate::cluster::{Cluster, FAILED, state};
use crate::operator::end_left_behind;
use std::fs;
use std::path::{Path, PathBuf};

/// How many clusters of failed runs are kept. `make everything` runs other tests after a failure.
const KEPT: usize = 4;

/// Ends and removes the clusters of earlier runs that are over, except the latest that failed. Called before this run has any.
pub fn clear_away() -> Result<(), String> {
    let mut failed = Vec::new();
    for (pid, dir) in of_earlier_runs() {
        match fs::metadata(dir.join(FAILED)).and_then(|mark| mark.modified()) {
            // This run needs the directories of its own number.
            Ok(at) if pid != std::process::id() => failed.push((at, dir)),
            _ => remove(dir)?,
        }
    }
    failed.sort();
    let surplus = failed.len().saturating_sub(KEPT);
    failed
        .into_iter()
        .take(surplus)
        .try_for_each(|(_, dir)| remove(dir))
}

/// The clusters whose run is over: its process number, which this run may have again, and their directories.
fn of_earlier_runs() -> impl Iterator<Item = (u32, PathBuf)> {
    let entries = fs::read_dir(state()).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let (pid, _) = name.strip_prefix("test-")?.split_once('-')?;
        let pid: u32 = pid.parse().ok()?;
        let lives = Path::new(&format!("/proc/{pid}")).exists();
        (!lives || pid == std::process::id()).then(|| (pid, entry.path()))
    })
}

fn remove(dir: PathBuf) -> Result<(), String> {
    let left = Cluster { dir };
    end_left_behind(&left);
    left.down(false)
}
