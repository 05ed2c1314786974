//! Forwards the operator's requests to the API server, and injects faults.

use super::call::Call;
use super::status::status;
use super::{Fault, Faults, stream};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use kube::client::{Body, Client};
use serde_json::json;
use std::future::pending;
use std::io;
use std::path::{Path, PathBuf};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};

type Reply = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// A running proxy; it ends with this value.
pub struct Proxy {
    pub faults: Faults,
    /// Leads an operator here. It holds no secret: the proxy adds the operator's token itself.
    pub kubeconfig: PathBuf,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy that calls the API server as `client`, and writes `kubeconfig`.
    pub fn start(runtime: &Handle, client: Client, kubeconfig: &Path, seed: u64) -> Result<Self, String> {
        let listener = runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .map_err(|e| e.to_string())?;
        let port = listener.local_addr().map_err(|e| e.to_string())?.port();
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
        });
        std::fs::write(kubeconfig, config.to_string()).map_err(|e| e.to_string())?;
        let faults = Faults::new(seed);
        Ok(Self {
            kubeconfig: kubeconfig.into(),
            task: runtime.spawn(serve(listener, client, faults.clone())),
            faults,
        })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, client: Client, faults: Faults) {
    // They end with the proxy.
    let mut connections = JoinSet::new();
    while let Ok((connection, _)) = listener.accept().await {
        let (client, faults) = (client.clone(), faults.clone());
        let service = service_fn(move |request| answer(client.clone(), faults.clone(), request));
        connections.spawn(async move {
            // A connection that broke was to break, or its client has gone.
            _ = http1::Builder::new()
                .serve_connection(TokioIo::new(connection), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// The answer to one request. An error closes the connection without any.
async fn answer(client: Client, faults: Faults, request: Request<Incoming>) -> Result<Reply, io::Error> {
    let call = Call::read(request.method(), request.uri());
    let write = faults.arrived(&call);
    let fault = faults.on(&call, Fault::is_of_a_call);
    match fault {
        Some(Fault::Refused(code)) => {
            faults.answered(write, code);
            return Ok(error_reply(code));
        }
        Some(Fault::Gone) => return Ok(error_reply(410)),
        Some(Fault::Dropped) => return Err(io::ErrorKind::ConnectionReset.into()),
        Some(Fault::Hangs) => return pending().await,
        _ => {}
    }
    let (mut parts, body) = request.into_parts();
    for name in [HOST, AUTHORIZATION] {
        parts.headers.remove(name);
    }
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    // Cancelling a request does not undo it, so it is forwarded to its end, however late.
    let noted = faults.clone();
    let handed_on = tokio::spawn(async move {
        if let Some(Fault::Late(by)) = fault {
            tokio::time::sleep(by).await;
        }
        let reply = client.send(Request::from_parts(parts, Body::from(body))).await?;
        noted.answered(write, reply.status().as_u16());
        Ok::<_, kube::Error>(reply)
    });
    let reply = handed_on
        .await
        .map_err(io::Error::other)?
        .map_err(io::Error::other)?;
    match fault {
        Some(Fault::AnsweredWith(code)) => Ok(error_reply(code)),
        Some(Fault::ReplyLost) => Err(io::ErrorKind::ConnectionReset.into()),
        Some(Fault::ReplyHangs) => pending().await,
        _ if call.verb == "watch" && reply.status().is_success() => Ok(reply.map(|body| {
            let events = stream::events(faults, call, body);
            BodyExt::boxed_unsync(StreamBody::new(Box::pin(events)))
        })),
        _ => Ok(reply.map(|body| BodyExt::boxed_unsync(body.map_err(io::Error::other)))),
    }
}

fn error_reply(code: u16) -> Reply {
    let body = Full::from(status(code).to_string()).map_err(|never| match never {});
    let mut reply = Response::new(BodyExt::boxed_unsync(body));
    *reply.status_mut() = code.try_into().unwrap_or_default();
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if code == 429 {
        headers.insert(RETRY_AFTER, 1.into());
    }
    reply
}
