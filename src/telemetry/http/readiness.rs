//! Serves `/livez` and `/readyz` in the format of kube-apiserver.

use crate::cache::synced_cache::SharedCache;
use crate::cache::watch_states::Watch;
use crate::telemetry::metrics::requests::RequestMetrics;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::routing::get;
use std::collections::BTreeMap;
use std::time::Duration;

/// The name of a check and its error.
type Check = (&'static str, Result<(), String>);

/// The check that the process answers.
const PING: Check = ("ping", Ok(()));

/// How long a watch may fail before the process is not ready. A healthy watch is restarted every 20 s.
const LONGEST_FAILURE: Duration = Duration::from_secs(30);

/// The routes of both endpoints. `requests` knows when the watches were answered.
pub fn routes(shared: SharedCache, requests: RequestMetrics) -> Router {
    Router::new()
        .route("/livez", get(async |query| answer("livez", &[PING], query)))
        .route("/readyz", get(ready))
        .with_state((shared, requests))
}

/// Ready when every watch has delivered its list, and while none fails for long. A standby becomes ready as well.
async fn ready(
    State((shared, requests)): State<(SharedCache, RequestMetrics)>,
    query: RawQuery,
) -> (StatusCode, String) {
    let watches = watches(&shared.watches.now(), |kind| requests.listed_ago(&resource(kind)));
    answer("readyz", &[PING, ("watches", watches)], query)
}

/// The resource of a kind, as requests name it.
fn resource(kind: &str) -> String {
    format!("{}s", kind.to_lowercase())
}

/// Whether every watch has delivered its list and works; `answered` says how long ago the watch of a kind was answered.
fn watches(
    watches: &BTreeMap<String, Watch>,
    answered: impl Fn(&str) -> Option<Duration>,
) -> Result<(), String> {
    if watches.is_empty() {
        return Err("the watches have not started".into());
    }
    let error_of = |watch: &Watch| watch.error.clone().unwrap_or_else(|| "no answer".into());
    let problem = |(kind, watch): (&String, &Watch)| {
        if watch.denied {
            return None;
        }
        if !watch.complete {
            return Some(match &watch.error {
                Some(error) => format!("{kind}: {error}"),
                None => format!("{kind}: no list yet"),
            });
        }
        let ago = answered(kind).filter(|ago| *ago >= LONGEST_FAILURE)?;
        Some(format!(
            "{kind}: the watch has failed for {} s: {}",
            ago.as_secs(),
            error_of(watch)
        ))
    };
    let problems: Vec<_> = watches.iter().filter_map(problem).collect();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.join("; "))
    }
}

/// 200 when every check holds, else 500; with `?verbose` or a failure, a line for each.
fn answer(endpoint: &str, checks: &[Check], RawQuery(query): RawQuery) -> (StatusCode, String) {
    let well = checks.iter().all(|(_, outcome)| outcome.is_ok());
    let verbose = query.is_some_and(|query| query.split('&').any(|word| word.starts_with("verbose")));
    if well && !verbose {
        return (StatusCode::OK, "ok".to_string());
    }
    let lines = checks.iter().map(|(name, outcome)| match outcome {
        Ok(()) => format!("[+]{name} ok\n"),
        Err(error) => format!("[-]{name} failed: {error}\n"),
    });
    let lines: String = lines.collect();
    let (code, result) = if well {
        (StatusCode::OK, "passed")
    } else {
        (StatusCode::INTERNAL_SERVER_ERROR, "failed")
    };
    (code, format!("{lines}{endpoint} check {result}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(holds: bool, query: &str) -> (StatusCode, String) {
        let error = || Err("Pool: connection refused".to_string());
        let watches = if holds { Ok(()) } else { error() };
        let query = RawQuery(Some(query.to_string()));
        answer("readyz", &[PING, ("watches", watches)], query)
    }

    #[test]
    fn a_watch_that_is_not_answered_for_half_a_minute_fails_by_name() {
        let complete = |error: Option<&str>| Watch {
            complete: true,
            error: error.map(str::to_string),
            ..Watch::default()
        };
        let all = BTreeMap::from([
            ("Pod".to_string(), complete(Some("connection refused"))),
            ("Pool".to_string(), complete(None)),
        ]);
        let at = |pods: u64| {
            watches(&all, move |kind| {
                Some(Duration::from_secs(if kind == "Pod" { pods } else { 21 }))
            })
        };
        assert_eq!(at(29), Ok(()), "a watch is restarted every 20 s");
        assert_eq!(
            at(31),
            Err("Pod: the watch has failed for 31 s: connection refused".into())
        );
        let listing = BTreeMap::from([("Pool".to_string(), Watch::default())]);
        assert_eq!(watches(&listing, |_| None), Err("Pool: no list yet".into()));
        assert!(watches(&BTreeMap::new(), |_| None).is_err());
        let denied = Watch {
            denied: true,
            ..Watch::default()
        };
        let namespaced = BTreeMap::from([("Node".to_string(), denied)]);
        assert_eq!(
            watches(&namespaced, |_| None),
            Ok(()),
            "the operator works without nodes"
        );
        assert_eq!(resource("SandboxClaim"), "sandboxclaims");
    }

    #[test]
    fn a_failure_is_reported_with_every_check() {
        let (code, text) = ask(false, "");
        assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(
            text,
            "[+]ping ok\n[-]watches failed: Pool: connection refused\nreadyz check failed\n"
        );
    }

    #[test]
    fn success_is_one_word_unless_more_is_asked_for() {
        assert_eq!(ask(true, ""), (StatusCode::OK, "ok".to_string()));
        let (code, text) = ask(true, "verbose");
        assert_eq!(code, StatusCode::OK);
        assert_eq!(text, "[+]ping ok\n[+]watches ok\nreadyz check passed\n");
    }
}
