//! Signs each request: User-Agent, and the field manager of the operator's writes.

use axum::http::header::USER_AGENT;
use axum::http::{HeaderValue, Method, Request, Uri};
use kube::client::Body;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// Owner of the fields that the operator writes, in `metadata.managedFields`.
pub const FIELD_MANAGER: &str = "warmpool";

/// The program that sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// The operator.
    Controller,
    /// `warmpool plan`.
    Plan,
    /// The kubectl plugin.
    Kubectl,
}

impl Component {
    /// The User-Agent header, which the audit log and the metrics of the API server quote.
    pub fn user_agent(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Controller => concat!("warmpool/", env!("CARGO_PKG_VERSION"), " (controller)"),
            Self::Plan => concat!("warmpool/", env!("CARGO_PKG_VERSION"), " (plan)"),
            Self::Kubectl => concat!("warmpool/", env!("CARGO_PKG_VERSION"), " (kubectl)"),
        })
    }

    /// Field manager of writes that name none. The plugin writes in the name of kubectl and names its own.
    fn field_manager(self) -> Option<&'static str> {
        (self == Self::Controller).then_some(FIELD_MANAGER)
    }
}

/// The middleware that signs the requests of a component. It also reaches requests that a library builds, such as
/// events.
#[derive(Clone, Copy, Debug)]
pub struct Identify(pub Component);

impl<S> Layer<S> for Identify {
    type Service = Identified<S>;

    fn layer(&self, inner: S) -> Identified<S> {
        Identified {
            inner,
            component: self.0,
        }
    }
}

/// A service whose requests are signed.
#[derive(Clone, Debug)]
pub struct Identified<S> {
    inner: S,
    component: Component,
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for Identified<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> S::Future {
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, self.component.user_agent());
        if let Some(manager) = self.component.field_manager()
            && has_field_manager(request.method())
            && let Some(uri) = with_field_manager(request.uri(), manager)
        {
            *request.uri_mut() = uri;
        }
        self.inner.call(request)
    }
}

/// A deletion has no field manager.
fn has_field_manager(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(method)
}

/// `uri` with the parameter `fieldManager`; `None` when it has one already.
fn with_field_manager(uri: &Uri, manager: &str) -> Option<Uri> {
    let query = uri.query().unwrap_or_default();
    if query.split('&').any(|pair| pair.starts_with("fieldManager=")) {
        return None;
    }
    let separator = if query.is_empty() { "" } else { "&" };
    let signed = format!("{}?{query}{separator}fieldManager={manager}", uri.path());
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(signed.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(uri: &str) -> Option<String> {
        let uri: Uri = uri.parse().ok()?;
        with_field_manager(&uri, "warmpool").map(|uri| uri.to_string())
    }

    #[test]
    fn a_write_names_its_field_manager_once() {
        let rows = [
            ("/api/v1/pods", Some("/api/v1/pods?fieldManager=warmpool")),
            ("/api/v1/pods?", Some("/api/v1/pods?fieldManager=warmpool")),
            (
                "https://host:6443/api/v1/pods/a?&dryRun=All",
                Some("https://host:6443/api/v1/pods/a?&dryRun=All&fieldManager=warmpool"),
            ),
            ("/api/v1/pods?fieldManager=other", None),
        ];
        for (uri, expected) in rows {
            assert_eq!(signed(uri).as_deref(), expected, "{uri}");
        }
    }
}
