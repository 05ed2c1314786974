//! Parses verb, namespace and resource of a request.

use hyper::{Method, Uri};

/// A request in the words of the audit log.
#[derive(Clone, Debug)]
pub struct Call {
    pub verb: &'static str,
    /// Empty for a request about the whole cluster.
    pub namespace: String,
    /// With its subresource: `pods`, `sandboxclaims/status`.
    pub resource: String,
    /// Empty for a request that names no object.
    pub name: String,
}

impl Call {
    pub fn read(method: &Method, uri: &Uri) -> Self {
        let mut parts = uri.path().split('/').filter(|part| !part.is_empty()).peekable();
        // `api/v1` or `apis/GROUP/VERSION`.
        let prefix = if parts.next() == Some("apis") { 2 } else { 1 };
        let mut parts = parts.skip(prefix).peekable();
        let namespace = parts.next_if_eq(&"namespaces").and_then(|_| parts.next());
        let mut resource = parts.next().unwrap_or_default().to_string();
        let name = parts.next();
        if let Some(subresource) = parts.next() {
            resource = format!("{resource}/{subresource}");
        }
        let watches = uri.query().is_some_and(|query| query.contains("watch=true"));
        let verb = match *method {
            Method::POST => "create",
            Method::PATCH => "patch",
            Method::PUT => "update",
            Method::DELETE => "delete",
            _ if watches => "watch",
            _ if name.is_some() => "get",
            _ => "list",
        };
        Self {
            verb,
            namespace: namespace.unwrap_or_default().into(),
            resource,
            name: name.unwrap_or_default().into(),
        }
    }
}
