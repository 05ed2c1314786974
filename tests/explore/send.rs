//! Sends the operator's requests through its own executor and client, to the model of the API server or into a broken
//! connection.

use crate::api_server::ApiServer;
use crate::request::{HttpAnswer, HttpRequest};
use kube::Client;
use kube::client::Body;
use std::cell::RefCell;
use std::io::{Error, ErrorKind};
use tokio::runtime::{Builder, Runtime};
use warmpool::executor::send;
use warmpool::model::request::{Outcome, Request};

/// The other end of the connection.
#[derive(Default)]
struct Peer {
    /// The API server and its time; `None`: the connection is broken.
    api_server: Option<(ApiServer, String)>,
    /// The request that arrived, or that was lost.
    request: Option<HttpRequest>,
}

thread_local! {
    static PEER: RefCell<Peer> = RefCell::default();
    static SENDER: Sender = Sender::new();
}

/// A client, and a runtime whose clock stands still while a request is under way.
struct Sender {
    runtime: Runtime,
    client: Client,
}

impl Sender {
    fn new() -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let guard = runtime.enter();
        let client = Client::new(tower::service_fn(arrive), "default");
        drop(guard);
        Self { runtime, client }
    }
}

/// Has the API server serve a request. A request that cannot be built never reaches it.
pub fn serve(api_server: &mut ApiServer, request: &Request, now: &str) -> Outcome {
    let peer = Peer {
        api_server: Some((std::mem::take(api_server), now.to_string())),
        request: None,
    };
    let (peer, outcome) = send_to(peer, request);
    (*api_server, _) = peer.api_server.unwrap();
    outcome
}

/// Sends a request into a broken connection. Returns what would have arrived, and the outcome.
pub fn lose(request: &Request) -> (Option<HttpRequest>, Outcome) {
    let (peer, outcome) = send_to(Peer::default(), request);
    (peer.request, outcome)
}

fn send_to(peer: Peer, request: &Request) -> (Peer, Outcome) {
    PEER.set(peer);
    let outcome = SENDER.with(|sender| sender.runtime.block_on(send::send(&sender.client, request)));
    (PEER.take(), outcome)
}

async fn arrive(request: http::Request<Body>) -> Result<http::Response<Body>, Error> {
    let (parts, body) = request.into_parts();
    let content_type = parts.headers.get(http::header::CONTENT_TYPE);
    let content_type = content_type.map_or("", |value| value.to_str().unwrap());
    let body = body.collect_bytes().await.unwrap();
    let request = HttpRequest::read(&parts.method, parts.uri.path(), content_type, &body);
    let HttpAnswer { code, body } = PEER.with_borrow_mut(|peer| {
        assert!(peer.request.is_none(), "one request, one call");
        let request = peer.request.insert(request);
        let (api_server, now) = peer.api_server.as_mut().ok_or(ErrorKind::ConnectionReset)?;
        Ok::<_, Error>(api_server.serve(request, now))
    })?;
    let body = Body::from(body.text.clone().into_bytes());
    Ok(http::Response::builder().status(code).body(body).unwrap())
}
