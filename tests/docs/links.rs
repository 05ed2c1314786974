//! Checks that every link within the repository leads somewhere.

use crate::pages::{Page, outside_fences, pages, repository};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// The targets of `[text](target)` and `![text](target)`. Code in backticks has no links.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in outside_fences(text) {
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for rest in prose.split("](").skip(1) {
            found.push(rest.split([')', ' ']).next().unwrap_or_default().to_string());
        }
    }
    found
}

/// The anchors of a page, as GitHub and the site make them from its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = outside_fences(text).filter(|line| line.starts_with('#'));
    let slug = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>()
    };
    headings.map(slug).collect()
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// What is wrong with a link of a page; nothing with a link to another host.
fn fault(page: &Page, target: &str, all: &[Page]) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() {
        page.path.clone()
    } else {
        plain(&page.path.parent().unwrap().join(path))
    };
    if !repository().join(&path).exists() {
        return Some(format!("there is no {}", path.display()));
    }
    let aim = all.iter().find(|page| page.path == path);
    let missing = !anchor.is_empty() && !aim.is_some_and(|page| anchors(&page.text).contains(anchor));
    missing.then(|| format!("{} has no heading #{anchor}", path.display()))
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let all = pages();
    let mut links = 0;
    for page in &all {
        for target in targets(&page.text) {
            links += 1;
            let fault = fault(page, &target, &all);
            assert!(
                fault.is_none(),
                "{}: ({target}): {}",
                page.path.display(),
                fault.unwrap()
            );
        }
    }
    assert!(links > 60, "only {links} links were found");
}

#[test]
fn a_link_to_nothing_is_found() {
    let all = pages();
    let readme = all
        .iter()
        .find(|page| page.path == Path::new("README.md"))
        .unwrap();
    assert!(fault(readme, "docs/usage.md", &all).is_none());
    assert!(fault(readme, "docs/usage.md#claims", &all).is_none());
    assert!(fault(readme, "docs/nowhere.md", &all).is_some());
    assert!(fault(readme, "docs/usage.md#nowhere", &all).is_some());
    assert_eq!(
        targets("see [a](b#c) and `[no](link)`\n```\n[no](either)\n```"),
        ["b#c"]
    );
}

/// The alerts carry addresses of the runbook on the site.
#[test]
fn every_runbook_address_of_an_alert_is_a_heading() {
    let rules = std::fs::read_to_string(repository().join("charts/warmpool/rules/warmpool.yaml")).unwrap();
    let runbook = std::fs::read_to_string(repository().join("docs/runbook.md")).unwrap();
    let anchors = anchors(&runbook);
    let mut addresses = 0;
    for rest in rules.split("https://warmpool.dev/docs/runbook#").skip(1) {
        let anchor: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        assert!(
            anchors.contains(&anchor),
            "docs/runbook.md has no heading #{anchor}"
        );
        addresses += 1;
    }
    assert!(addresses > 4, "only {addresses} addresses were found");
}

#[test]
fn every_page_of_docs_is_in_the_sites_navigation() {
    let site = std::fs::read_to_string(repository().join("mkdocs.yml")).unwrap();
    for page in pages() {
        if let Ok(path) = page.path.strip_prefix("docs") {
            let listed = site.contains(&format!(": {}\n", path.display()));
            assert!(listed, "mkdocs.yml does not list {}", path.display());
        }
    }
}
