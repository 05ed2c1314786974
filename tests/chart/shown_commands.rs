//! Runs the commands of kubectl, Helm and warmpool that README and docs show, on a cluster with the chart, a pool and claims.

use crate::cluster::{binaries, output_of, repository};
use crate::plane::{CHART, Plane};
use crate::wait::{ensure, until};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Stands above a block that cannot run here, with the reason.
pub const NOT_RUN: &str = "<!-- not run: ";

/// Beginnings of commands that are not run here, and why.
const ELSEWHERE: [(&str, &str); 9] = [
    (
        "kubectl warmpool claim python -it",
        "needs a terminal and containers",
    ),
    ("kubectl warmpool exec", "needs containers"),
    ("kubectl warmpool status python --watch", "does not end"),
    (
        "kubectl warmpool drain",
        "ends with 2 where a claim blocks the drain",
    ),
    ("kubectl warmpool size", "needs the claims of some time"),
    ("kubectl -n warmpool-system logs", "needs containers"),
    ("kubectl -n warmpool-system get --raw", "needs containers"),
    (
        "kubectl apply -k config/default",
        "kustomize::kubectl_apply_k_installs_it",
    ),
    (
        "helm test",
        "install::helm_test_plans_with_the_rights_of_the_operator",
    ),
];

/// Makes in `folder` what the pages call by name, and what they find in the folder that they run in.
pub fn programs(folder: &Path) -> Result<(), String> {
    let helm = std::env::var("WARMPOOL_HELM").unwrap_or_else(|_| "helm".into());
    let warmpool = PathBuf::from(env!("CARGO_BIN_EXE_warmpool"));
    for (name, target) in [
        ("kubectl", binaries().join("kubectl")),
        ("helm", binaries().join(helm)),
        ("kubectl-warmpool", warmpool.clone()),
        ("warmpool", warmpool),
        ("charts", repository().join("charts")),
        ("config", repository().join("config")),
        ("crds", repository().join("crds")),
    ] {
        symlink(target, folder.join(name)).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// A shell in `folder` that stops at the first error.
pub fn shell(plane: &Plane, folder: &Path, commands: &str) -> Command {
    let mut command = Command::new("bash");
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .args(["-euo", "pipefail", "-c", commands])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("KUBECONFIG", plane.cluster.kubeconfig());
    command
}

/// Whether a line begins a command that is judged here.
fn is_command(line: &str) -> bool {
    ["kubectl ", "helm ", "warmpool "]
        .iter()
        .any(|program| line.starts_with(program))
}

/// The blocks of commands of a page: its fenced ones whole, and each command of its other blocks.
fn blocks(page: &str) -> Vec<String> {
    let (mut blocks, mut fence, mut runs, mut before, mut continued) =
        (Vec::<String>::new(), None, true, "", false);
    for line in page.lines() {
        let trimmed = line.trim_start();
        if let Some(language) = trimmed.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language) };
            runs = !before.starts_with(NOT_RUN);
            if fence == Some("sh") && runs {
                blocks.push(String::new());
            }
        } else if fence == Some("sh") && runs {
            let block = blocks.last_mut();
            _ = block.map(|block| *block += &format!("{line}\n"));
        } else if fence.is_none() && line.starts_with("    ") {
            let command = trimmed.strip_prefix("$ ").unwrap_or(trimmed);
            match blocks.last_mut().filter(|_| continued) {
                Some(block) => *block += &format!("\n{command}"),
                None if is_command(command) => blocks.push(command.to_string()),
                None => continue,
            }
            continued = command.ends_with('\\');
        }
        before = line;
    }
    blocks.retain(|block| block.lines().any(is_command));
    blocks
}

fn pages() -> Result<Vec<PathBuf>, String> {
    let mut found = ["README.md", "SECURITY.md", "charts/warmpool/README.md"]
        .map(PathBuf::from)
        .to_vec();
    for folder in ["docs", "docs/how-to"] {
        let entries = fs::read_dir(repository().join(folder)).map_err(|e| e.to_string())?;
        let names = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned());
        // Its test is ten_minutes.rs.
        let pages = names.filter(|name| name.ends_with(".md") && name != "first-ten-minutes.md");
        found.extend(pages.map(|name| Path::new(folder).join(name)));
    }
    found.sort();
    Ok(found)
}

/// The command with names in place of the words that stand for one. An installation is only tried.
fn runnable(block: &str) -> String {
    let named = block
        .replace("NAMESPACE", "default")
        .replace("POOL", "python")
        .replace("CLAIM", "run-42")
        .replace("REGISTRY", "registry.example.com")
        .replace("=NS", "=default")
        .replace(" NS", " default")
        .replace("NAME ", "run-42 ");
    if named.starts_with("helm install") {
        format!("{named} --dry-run=client >/dev/null")
    } else if named.contains("rollout restart") {
        // As with kubectl, a pool restarts at most once within a second, and the command before may have restarted it.
        format!("sleep 1\n{named}")
    } else {
        named
    }
}

pub fn every_command_of_readme_and_docs_works(plane: &Plane) -> Result<(), String> {
    plane.install(CHART, &["--create-namespace"])?;
    let operator = plane.operator()?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    programs(folder.path())?;
    let ran = set_up(plane, folder.path()).and_then(|()| run_all(plane, folder.path()));
    let tidy =
        "kubectl delete sbc,pools,podtemplates --all && kubectl wait --for=delete pods --all --timeout=60s";
    let tidied = output_of(shell(plane, folder.path(), tidy), None);
    operator.stop()?;
    ran.and(tidied.map(drop))
}

/// The objects of the samples, a pool that has rolled out once, a claim that waits and one that has failed.
fn set_up(plane: &Plane, folder: &Path) -> Result<(), String> {
    let commands = r#"
        kubectl apply -k config/samples
        kubectl label pool python lang=python
        kubectl wait --for=condition=Ready sbc/run-42 --timeout=60s
        kubectl warmpool rollout restart python
        kubectl warmpool rollout status python --timeout=60s
        claim=$'apiVersion: warmpool.dev/v1alpha1\nkind: SandboxClaim\n'
        kubectl apply -f - <<<"${claim}metadata: {name: early}"$'\n'"spec: {poolRef: {name: missing}}"
        kubectl apply -f - <<<"${claim}metadata: {name: late}"$'\n'"spec: {poolRef: {name: missing}, waitTimeoutSeconds: 1}"
    "#;
    output_of(shell(plane, folder, commands), None)?;
    until("one claim waits and one has failed", 30, || {
        let claims = output_of(shell(plane, folder, "kubectl get sbc early late"), None)?;
        ensure(claims.contains("Pending") && claims.contains("Failed"), || {
            claims.clone()
        })
    })
}

fn run_all(plane: &Plane, folder: &Path) -> Result<(), String> {
    let (mut run, mut skipped) = (0, 0);
    for page in pages()? {
        let text = fs::read_to_string(repository().join(&page)).map_err(|e| e.to_string())?;
        for block in blocks(&text) {
            if ELSEWHERE.iter().any(|(start, _)| block.starts_with(start)) {
                skipped += 1;
                continue;
            }
            let mut command = shell(plane, folder, &runnable(&block));
            command.env("REPOSITORY", "registry.example.com/team/warmpool");
            output_of(command, None).map_err(|e| format!("{}: {block}\n{e}", page.display()))?;
            run += 1;
        }
    }
    ensure(run >= 30 && skipped >= 4, || {
        format!("{run} blocks were run and {skipped} left out")
    })
}

pub fn the_commands_of_a_page_are_found() -> Result<(), String> {
    let page = "Text\n\n    kubectl get a \\\n      -n b\n    not a command\n\n<!-- not run: no -->\n```sh\nkubectl no\n```\n\
                ```sh\ncd x\nkubectl get c\n```\n```yaml\nkubectl: no\n```\n    $ helm list\n";
    let expected = ["kubectl get a \\\n-n b", "cd x\nkubectl get c\n", "helm list"];
    let found = blocks(page);
    ensure(found == expected, || format!("{found:?}"))
}
