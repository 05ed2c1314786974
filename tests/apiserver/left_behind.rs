//! Ends what killed runs of the tests left behind, and keeps what failed runs are looked into with.

use crate::cluster::{Cluster, state};
use crate::operator::end_left_behind;
use std::fs;
use std::path::{Path, PathBuf};

/// A file in the directory of a cluster that was ended after a failure.
const FAILED: &str = "failed";
/// So many clusters of failed runs are kept: `make everything` goes on with other tests after a failure.
const KEPT: usize = 4;

/// Keeps the histories and logs of a cluster that was ended after a failure, until enough later runs have failed.
pub fn keep(cluster: &Cluster) -> Result<(), String> {
    fs::write(cluster.dir.join(FAILED), "").map_err(|e| format!("{}: {e}", cluster.dir.display()))
}

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
