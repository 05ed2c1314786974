//! A sandbox that the watch does not show counts as lost only when a live read of its pod confirms it.

use crate::api::claim::BoundSandbox;
use crate::cache::snapshot::{ClaimSnapshot, SandboxRead};
use jiff::Timestamp;

/// What live reads say of published sandboxes that the watch does not show.
pub(crate) struct Loss {
    /// All of them are lost.
    pub(crate) confirmed: bool,
    /// Those whose pods are to be read now.
    pub(crate) read_pods: Vec<BoundSandbox>,
    /// When the first failed read may be repeated.
    pub(crate) retry_at: Option<Timestamp>,
}

/// Whether live reads show all `missing` sandboxes lost.
pub(crate) fn confirm_loss(snapshot: &ClaimSnapshot, missing: Vec<BoundSandbox>) -> Loss {
    let mut loss = Loss {
        confirmed: true,
        read_pods: Vec::new(),
        retry_at: None,
    };
    for sandbox in missing {
        let read = snapshot.reads.get(sandbox.uid.as_str());
        loss.confirmed &= read == Some(&SandboxRead::Lost);
        match read {
            Some(SandboxRead::Lost | SandboxRead::PodSent) => {}
            Some(SandboxRead::Again(at)) if *at > snapshot.now => {
                loss.retry_at = Some(loss.retry_at.map_or(*at, |earliest| earliest.min(*at)));
            }
            _ => loss.read_pods.push(sandbox),
        }
    }
    loss
}
