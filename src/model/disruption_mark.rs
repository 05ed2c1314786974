//! What a claimed pod says of its disruption: since when it may be evicted, and whether it may be now.

use crate::api::labels;
use crate::model::stored;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The label and the annotation of a claimed pod by which it may be evicted, now or later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisruptionMark {
    /// When the grace ends that the claim gives its tenant. `None`: nobody wants the node back.
    pub deadline: Option<Timestamp>,
    /// The pod may be evicted now.
    pub allowed: bool,
}

impl DisruptionMark {
    /// The deadline that the annotation of a pod holds.
    pub(crate) fn deadline_of(metadata: &ObjectMeta) -> Option<Timestamp> {
        stored::annotation(metadata, labels::DISRUPTION_DEADLINE)?
            .parse()
            .ok()
    }
}
