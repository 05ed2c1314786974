//! Every request names the operator: the User-Agent is in the audit log, the field manager in `managedFields`.

use crate::world::{Reply, World};
use http::{Method, Request, Response, header};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::Layer;
use warmpool::client::identity::{Component, Identify};
use warmpool::controllers::leader_election::timing::Timing;
use warmpool::controllers::leader_election::{Elector, Settings, Term};

const OPERATOR: &str = concat!("warmpool/", env!("CARGO_PKG_VERSION"), " (controller)");

/// The field managers in a query.
fn managers(query: &str) -> Vec<&str> {
    let pairs = query.split('&');
    pairs
        .filter_map(|pair| pair.strip_prefix("fieldManager="))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn every_request_has_the_user_agent_and_every_write_the_field_manager() {
    let mut world = World::new(|_| Reply::Done);
    world.pool("default", "python", 2);
    world.claim("default", "run", "python", &json!({}));
    world.run_for(Duration::from_secs(2)).await;
    world.pool_is_scaled("default", "python", 4);
    world.run_for(Duration::from_secs(2)).await;
    world.pool_is_scaled("default", "python", 0);
    world.run_for(Duration::from_secs(2)).await;
    let mut kinds = BTreeSet::new();
    for request in world.requests() {
        let (verb, query) = (request.verb.as_str(), &request.query);
        assert_eq!(request.user_agent, OPERATOR, "{request:?}");
        let expected: &[&str] = if ["POST", "PATCH", "PUT"].contains(&verb) {
            &["warmpool"]
        } else {
            &[]
        };
        assert_eq!(managers(query), expected, "{request:?}");
        kinds.insert(format!("{verb} {}", request.resource));
    }
    for kind in [
        "POST controllerrevisions",
        "POST pods",
        "POST events",
        "PATCH pods",
        "PUT sandboxclaims/status",
        "PATCH pools/status",
        "DELETE pods",
    ] {
        assert!(kinds.contains(kind), "{kind} is not in {kinds:?}");
    }
}

#[tokio::test]
async fn the_lease_is_written_in_the_name_of_the_operator() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let stored = Arc::new(Mutex::new(None::<Vec<u8>>));
    let (requests, last) = (Arc::clone(&log), Arc::clone(&stored));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (log, stored) = (Arc::clone(&requests), Arc::clone(&stored));
        async move {
            let (parts, body) = request.into_parts();
            let agent = parts.headers[header::USER_AGENT].to_str().unwrap().to_string();
            let query = parts.uri.query().unwrap_or_default().to_string();
            log.lock().unwrap().push((parts.method.clone(), agent, query));
            let body = body.collect_bytes().await.unwrap();
            let not_found = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "not found", "details": {},
            });
            let mut stored = stored.lock().unwrap();
            if parts.method != Method::GET {
                let mut lease: serde_json::Value = serde_json::from_slice(&body).unwrap();
                lease["metadata"]["resourceVersion"] = json!("1");
                *stored = Some(lease.to_string().into());
            }
            let (code, body) = match &*stored {
                Some(lease) => (200, lease.clone()),
                None => (404, not_found.to_string().into()),
            };
            io::Result::Ok(Response::builder().status(code).body(Body::from(body)).unwrap())
        }
    });
    let client = Client::new(Identify(Component::Controller).layer(service), "default");
    let [lease, renew, retry] = [15, 10, 2].map(Duration::from_secs);
    let settings = Settings {
        name: "warmpool".into(),
        namespace: "default".into(),
        identity: "a".into(),
        pools: "shard=one".parse().unwrap(),
        timing: Timing::new(lease, renew, retry).unwrap(),
    };
    let (term, stop) = (watch::Sender::new(Term::None), CancellationToken::new());
    let mut leads = term.subscribe();
    let elector = tokio::spawn(Elector::new(client, settings).run(term, stop.clone()));
    tokio::time::timeout(Duration::from_secs(10), leads.wait_for(Term::runs))
        .await
        .unwrap()
        .unwrap();
    stop.cancel();
    elector.await.unwrap().unwrap();
    // By these, kubectl warmpool finds the lease of the operator that serves a pool.
    let lease: Value = serde_json::from_slice(last.lock().unwrap().as_ref().unwrap()).unwrap();
    assert_eq!(lease["metadata"]["labels"]["app.kubernetes.io/name"], "warmpool");
    assert_eq!(
        lease["metadata"]["annotations"]["warmpool.dev/pool-selector"],
        "shard=one"
    );
    let log = log.lock().unwrap();
    for method in [Method::POST, Method::PUT] {
        let sent = log.iter().find(|(sent, _, _)| *sent == method);
        let (_, agent, query) = sent.unwrap();
        assert_eq!(agent, OPERATOR, "{method}");
        assert_eq!(managers(query), ["warmpool"], "{method}");
    }
}
