//! Ends what killed runs of the tests left behind.

use crate::cluster::{Cluster, state};
use crate::operator::end_left_behind;
use std::fs;
use std::path::Path;

/// Ends and removes the clusters of earlier runs that are over. Called before this run has any.
pub fn clear_away() -> Result<(), String> {
    for entry in fs::read_dir(state()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let numbers = name
            .strip_prefix("test-")
            .and_then(|numbers| numbers.split_once('-'));
        let Some(pid) = numbers.and_then(|(pid, _)| pid.parse::<u32>().ok()) else {
            continue;
        };
        let lives = Path::new(&format!("/proc/{pid}")).exists();
        if !lives || pid == std::process::id() {
            let left = Cluster { dir: entry.path() };
            end_left_behind(&left);
            left.down(false)?;
        }
    }
    Ok(())
}
