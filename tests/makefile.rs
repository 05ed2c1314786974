//! Checks that `make everything` leaves out no test, and `make versions` begins with the Kubernetes that is promised.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a test fails"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

struct Target {
    /// The heading of `make help` that it stands under.
    section: String,
    recipe: String,
}

impl Target {
    /// The targets that its recipe calls.
    fn parts(&self) -> impl Iterator<Item = &str> {
        let calls = self.recipe.lines().filter_map(|line| line.split_once("$(MAKE) "));
        calls.flat_map(|(_, targets)| targets.split_whitespace())
    }
}

/// The targets that `make help` lists.
fn targets() -> BTreeMap<String, Target> {
    let (text, mut section, mut name) = (read("Makefile"), String::new(), String::new());
    let mut found = BTreeMap::<String, Target>::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("##@ ") {
            section = heading.into();
        } else if let Some((rule, _)) = line.split_once(" ## ")
            && let Some((target, _)) = rule.split_once(':')
        {
            name = target.into();
            let target = Target {
                section: section.clone(),
                recipe: String::new(),
            };
            found.insert(name.clone(), target);
        } else if let Some(command) = line.strip_prefix('\t') {
            let recipe = &mut found.get_mut(&name).unwrap().recipe;
            match command.strip_suffix('\\') {
                Some(continued) => recipe.push_str(continued),
                None => recipe.extend([command, "\n"]),
            }
        }
    }
    found
}

/// The targets that `make everything` runs, and those that call such targets and no others.
fn run_by_everything(targets: &BTreeMap<String, Target>) -> BTreeSet<String> {
    let words: BTreeSet<&str> = targets["everything"].recipe.split([' ', '"', '\n']).collect();
    let is_whole = |target: &Target| {
        let mut parts = target.parts().peekable();
        parts.peek().is_some() && parts.all(|part| words.contains(part))
    };
    let run = targets
        .iter()
        .filter(|(name, target)| words.contains(name.as_str()) || is_whole(target));
    run.map(|(name, _)| name.clone()).collect()
}

/// The targets that a text names: `make TARGET`.
fn named_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split("make ").skip(1);
    let targets = words.map(|rest| {
        let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        &rest[..end.unwrap_or(rest.len())]
    });
    targets.filter(|target| !target.is_empty())
}

#[test]
fn everything_runs_every_test_target() {
    let targets = targets();
    let run = run_by_everything(&targets);
    let tests = targets.iter().filter(|(_, target)| target.section == "Test it");
    let names: Vec<&String> = tests.map(|(name, _)| name).collect();
    assert!(names.len() > 10, "the Makefile's test targets are {names:?}");
    let others = ["everything", "help"];
    let left_out: Vec<_> = names
        .iter()
        .filter(|name| !run.contains(**name) && !others.contains(&name.as_str()))
        .collect();
    assert!(left_out.is_empty(), "`make everything` does not run {left_out:?}");
}

#[test]
fn everything_runs_every_target_that_readme_and_docs_name() {
    let targets = targets();
    let run = run_by_everything(&targets);
    for path in [
        "README.md",
        "docs/guarantees.md",
        "docs/usage.md",
        "docs/runbook.md",
        "SECURITY.md",
    ] {
        let text = read(path);
        for name in named_in(&text).filter(|name| *name != "everything") {
            assert!(
                run.contains(name),
                "{path} names `make {name}`, and `make everything` does not run it"
            );
        }
    }
}

#[test]
fn versions_begins_with_the_oldest_kubernetes_that_chart_and_readme_promise() {
    let makefile = read("Makefile");
    let versions = makefile.split_once("\nVERSIONS ?= ").unwrap().1;
    let oldest = versions.split_whitespace().next().unwrap();
    let minor = oldest.rsplit_once('.').unwrap().0;
    for (path, promise) in [
        ("README.md", format!("Kubernetes {minor} or newer")),
        (
            "charts/warmpool/README.md",
            format!("Kubernetes {minor} or newer"),
        ),
        (
            "charts/warmpool/Chart.yaml",
            format!("kubeVersion: \">={minor}.0-0\""),
        ),
    ] {
        assert!(read(path).contains(&promise), "{path} does not say: {promise}");
    }
}

#[test]
fn a_failed_call_stops_no_later_one_and_fails_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let rules =
        "bad:\n\t@exit 1\ngood-one:\n\t@test $(SIZE) = 2\nhalf:\n\t@echo much; echo One was NOT checked\n";
    fs::write(folder.path().join("Makefile"), rules).unwrap();
    let each = |calls: &[&str]| {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/each.py");
        let mut command = Command::new(program);
        command.current_dir(folder.path()).arg("logs").args(calls);
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };

    let (passed, told) = each(&["bad", "good-one SIZE=2"]);
    let lines: Vec<&str> = told.lines().collect();
    assert!(!passed, "{told}");
    assert_eq!(lines.len(), 4, "{told}");
    assert!(lines[1].starts_with("FAILED   0:00:0"), "{told}");
    assert!(
        lines[1].ends_with("  bad              see logs/01-bad.log"),
        "{told}"
    );
    assert!(lines[2].starts_with("ok       0:00:0"), "{told}");
    assert!(lines[2].ends_with("  good-one SIZE=2"), "{told}");
    assert!(lines[3].ends_with("  1 of 2 passed"), "{told}");
    assert!(each(&["good-one SIZE=2"]).0);
    let (passed, told) = each(&["half"]);
    assert!(passed && told.contains("\npartly   0:00:0"), "{told}");
    assert!(told.contains("  half  One was NOT checked\n"), "{told}");
}

#[test]
fn a_call_that_passed_is_run_again_only_once_a_file_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let rules =
        "good:\n\t@echo run >> ../runs\nbad:\n\t@echo run >> ../runs; exit 1\nhalf:\n\t@echo NOT checked\n";
    let repository = path.join("repository");
    fs::create_dir(&repository).unwrap();
    fs::write(repository.join("Makefile"), rules).unwrap();
    fs::write(repository.join(".gitignore"), "logs\n").unwrap();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .current_dir(&repository)
            .args(["-c", "user.name=test", "-c", "user.email=test@example.com"]);
        assert!(command.args(arguments).output().unwrap().status.success());
    };
    git(&["init"]);
    git(&["add", "."]);
    git(&["commit", "-m", "first"]);
    let each = || {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/each.py");
        let mut command = Command::new(program);
        let output = command
            .current_dir(&repository)
            .args(["logs", "good", "bad", "half"])
            .output()
            .unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<String> = told.lines().map(|line| line.chars().take(6).collect()).collect();
        let runs = fs::read_to_string(path.join("runs")).unwrap().lines().count();
        (lines, runs)
    };

    let (lines, runs) = each();
    assert_eq!(
        (lines[1].as_str(), lines[2].as_str(), runs),
        ("ok    ", "FAILED", 2)
    );
    let (lines, runs) = each();
    assert_eq!(
        (lines[2].as_str(), lines[3].as_str(), runs),
        ("before", "FAILED", 3)
    );
    assert_eq!(lines[4], "partly", "what was left out is checked again");
    fs::write(repository.join("more"), "").unwrap();
    let (lines, runs) = each();
    assert_eq!((lines[1].as_str(), runs), ("ok    ", 5));
    git(&["add", "."]);
    git(&["commit", "-m", "second"]);
    let (lines, runs) = each();
    assert_eq!((lines[1].as_str(), runs), ("ok    ", 7));
}
