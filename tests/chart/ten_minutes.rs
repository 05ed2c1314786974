//! Follows docs/first-ten-minutes.md: each of its commands, in its order, on a cluster that has never had the chart.

use crate::cluster::{output_of, repository};
use crate::operator::Operator;
use crate::plane::Plane;
use crate::shown_commands::{NOT_RUN, programs, shell};
use crate::wait::ensure;
use serde_json::json;
use std::fs;

const PAGE: &str = "docs/first-ten-minutes.md";
/// A block of commands of the page.
struct Step {
    commands: String,
    runs: bool,
    /// The block of output that follows.
    shows: String,
}

fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut block, mut before) = (Vec::<Step>::new(), None::<(&str, String)>, "");
    for line in page.lines() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(language)) => block = Some((language, String::new())),
            (Some((_, text)), None) => *text += &format!("{line}\n"),
            (Some(_), Some(_)) => match block.take() {
                Some(("sh", commands)) => steps.push(Step {
                    commands,
                    runs: !before.starts_with(NOT_RUN),
                    shows: String::new(),
                }),
                Some((_, text)) => _ = steps.last_mut().map(|step| step.shows = text),
                None => {}
            },
            (None, None) => before = line,
        }
    }
    steps
}

pub fn every_command_of_the_first_ten_minutes_works(plane: &Plane) -> Result<(), String> {
    let page = fs::read_to_string(repository().join(PAGE)).map_err(|e| e.to_string())?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    programs(folder.path())?;
    let (mut operator, mut transcript) = (None::<Operator>, Vec::new());
    for step in steps(&page).iter().filter(|step| step.runs) {
        // No container runs here: the operator runs beside the cluster, as long as the chart is installed.
        if step.commands.contains("helm uninstall") {
            operator.take().map_or(Ok(()), Operator::stop)?;
        }
        // What a block exports is there for the next ones.
        let kept = format!(
            "if [ -e exported ]; then source ./exported; fi\n{}\nexport -p >exported",
            step.commands
        );
        let said = output_of(shell(plane, folder.path(), &kept), None);
        let said = said.map_err(|e| format!("{PAGE}: {}\n{e}", step.commands))?;
        let words = |line: &str| {
            line.split_whitespace()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        let title = step.shows.lines().next().map(words).unwrap_or_default();
        ensure(
            title.is_empty() || said.lines().any(|line| words(line) == title),
            || format!("{PAGE} shows {title:?}, and\n{}\nprinted\n{said}", step.commands),
        )?;
        if step.commands.contains("helm install") {
            operator = Some(plane.operator()?);
        }
        transcript.push(json!({"commands": step.commands, "output": said}));
    }
    ensure(transcript.len() >= 9, || {
        format!("{PAGE} has {} blocks to run", transcript.len())
    })?;
    // docs/session.py draws a picture of it.
    match std::env::var("TRANSCRIPT") {
        Ok(file) => fs::write(file, json!(transcript).to_string()).map_err(|e| e.to_string()),
        Err(_) => Ok(()),
    }
}

pub fn a_block_that_cannot_run_says_why() -> Result<(), String> {
    let page = "```sh\none\n```\n\n<!-- not run: no reason -->\n```sh\ntwo\n```\n```text\nTITLE\n```\n";
    let found: Vec<_> = steps(page)
        .into_iter()
        .map(|s| (s.commands, s.runs, s.shows))
        .collect();
    let expected = [
        ("one\n".to_string(), true, String::new()),
        ("two\n".to_string(), false, "TITLE\n".to_string()),
    ];
    ensure(found == expected, || format!("{found:?}"))
}
