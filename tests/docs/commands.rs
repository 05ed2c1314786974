//! Checks that the commands that the pages show are commands of the binary, of make and of the scripts here.

use crate::pages::{Page, pages, repository};
use crate::reference::help;
use std::fs;

/// The command lines of a page: the indented blocks and the fenced ones that are not of another language.
pub fn command_lines(page: &Page) -> Vec<String> {
    let (mut found, mut fence) = (Vec::<String>::new(), None);
    let mut continued = false;
    for line in page.text.lines() {
        let trimmed = line.trim_start();
        if let Some(language) = trimmed.strip_prefix("```") {
            fence = if fence.is_some() {
                None
            } else {
                Some(language.trim())
            };
            continue;
        }
        let indented = fence.is_none() && line.starts_with("    ") && !trimmed.starts_with(['-', '|']);
        let shell = matches!(fence, Some("" | "console" | "bash" | "sh"));
        if shell || indented {
            let command = trimmed.strip_prefix("$ ").unwrap_or(trimmed);
            let joined = command.trim_end_matches('\\').trim_end();
            match found.last_mut().filter(|_| continued) {
                Some(last) => *last = format!("{last} {joined}"),
                None => found.push(joined.to_string()),
            }
            continued = command.ends_with('\\');
        }
    }
    found
}

/// The commands of a line: without its comment, and each part of a pipe or a list alone.
pub fn commands(line: &str) -> Vec<Vec<String>> {
    let line = line.split("  # ").next().unwrap_or_default();
    let parts = line.split(" | ").flat_map(|part| part.split(" && "));
    parts.map(words).filter(|words| !words.is_empty()).collect()
}

/// The words of a command, with quotes as a shell has them.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if open == c => quote = None,
            (None, ' ') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Asks the binary for help at the end of a command: it refuses what it does not know before. Words like POOL stand for names.
fn refusal(name: &str, arguments: &[String]) -> Option<String> {
    let end = arguments
        .iter()
        .position(|a| a == "--")
        .unwrap_or(arguments.len());
    let named = |word: &String| match word.chars().filter(char::is_ascii_uppercase).count() {
        0..=2 => word.clone(),
        _ => word.to_lowercase(),
    };
    let arguments: Vec<String> = arguments[..end].iter().map(named).collect();
    let output = help(name, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn every_command_of_ours_is_one_that_the_binary_takes() {
    let mut checked = 0;
    for page in pages() {
        for line in command_lines(&page) {
            for command in commands(&line) {
                let words: Vec<&str> = command.iter().map(String::as_str).collect();
                let refused = match words[..] {
                    ["kubectl", "warmpool", ..] => refusal("kubectl-warmpool", &command[2..]),
                    ["warmpool", ..] => refusal("warmpool", &command[1..]),
                    _ => continue,
                };
                checked += 1;
                assert!(
                    refused.is_none(),
                    "{}: {line}: {}",
                    page.path.display(),
                    refused.unwrap()
                );
            }
        }
    }
    assert!(checked > 15, "only {checked} commands were found");
}

#[test]
fn every_make_target_and_script_of_a_command_exists() {
    let makefile = fs::read_to_string(repository().join("Makefile")).unwrap();
    let mut checked = 0;
    for page in pages() {
        for line in command_lines(&page) {
            for command in commands(&line) {
                let known = match command[0].as_str() {
                    "make" => command[1..]
                        .iter()
                        .filter(|word| !word.contains('='))
                        .all(|target| makefile.contains(&format!("\n{target}: "))),
                    script if script.contains('/') && !script.starts_with(['/', '~', '.', '$', '"']) => {
                        repository().join(script).exists()
                    }
                    _ => continue,
                };
                checked += 1;
                assert!(known, "{}: {line}", page.path.display());
            }
        }
    }
    assert!(checked > 5, "only {checked} commands were found");
}

#[test]
fn a_wrong_command_is_refused() {
    let line = "kubectl warmpool claim python --no-such-flag -- sh   # a comment";
    let command = &commands(line)[0];
    assert_eq!(command[5..], ["--", "sh"].map(String::from));
    assert!(refusal("kubectl-warmpool", &command[2..]).is_some());
    assert!(refusal("kubectl-warmpool", &["claim".into(), "python".into()]).is_none());
    assert_eq!(words("a 'b c' \"\" d"), ["a", "b c", "", "d"]);
}
