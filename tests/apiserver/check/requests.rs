//! Tells when the operator decided on a write: when its first request for the write arrived.

use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// A write of an operator, as the API server or a proxy before it received it.
#[derive(Clone, Debug)]
pub struct Request {
    pub at: Timestamp,
    /// When it was answered; `Timestamp::MAX` where it was not.
    pub answered: Timestamp,
    /// As in the audit log: `patch`, `delete`.
    pub verb: String,
    /// As in the audit log: `pods`.
    pub resource: String,
    pub name: String,
    /// The status code of the answer; 0 where the request was not answered.
    pub code: u16,
}

impl Request {
    fn is_done(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// When the operator knew at the latest that it was not carried out.
    pub fn has_failed_by(&self) -> Timestamp {
        self.answered.min(self.at + GIVEN_UP)
    }

    /// Whatever follows was decided anew. Other answers have the operator send the same request again.
    fn ends_its_decision(&self) -> bool {
        self.is_done() || (self.code != 429 && (400..500).contains(&self.code))
    }
}

/// A request without an answer is given up after this long.
const GIVEN_UP: SignedDuration = SignedDuration::from_secs(15);

/// The requests of a story, by what they ask for, in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub struct Requests(BTreeMap<(String, String, String), Vec<Request>>);

impl Requests {
    pub fn new(requests: impl IntoIterator<Item = Request>) -> Self {
        let mut of: BTreeMap<_, Vec<Request>> = BTreeMap::new();
        for request in requests {
            let key = (
                request.verb.clone(),
                request.resource.clone(),
                request.name.clone(),
            );
            of.entry(key).or_default().push(request);
        }
        of.values_mut()
            .for_each(|all| all.sort_by_key(|request| request.at));
        Self(of)
    }

    fn of(&self, verb: &str, resource: &str, name: &str) -> &[Request] {
        let key = (verb.into(), resource.into(), name.into());
        self.0.get(&key).map_or(&[][..], Vec::as_slice)
    }

    /// When the operator had decided at the latest to patch or delete the pod of that name, of a write that the watcher saw at
    /// `seen`: when the first of its requests arrived that were sent for this decision. Without a request: `seen`.
    pub fn decided(&self, verb: &str, pod: &str, seen: Timestamp) -> Timestamp {
        let tries = self.tries(verb, pod, seen);
        tries.first().map_or(seen, |request| request.at)
    }

    /// When that write was answered, or seen.
    pub fn answered(&self, verb: &str, pod: &str, seen: Timestamp) -> Timestamp {
        let tries = self.tries(verb, pod, seen);
        tries.last().map_or(seen, |request| request.answered.min(seen))
    }

    /// The requests that were sent for one decision, the one that was carried out last.
    fn tries(&self, verb: &str, pod: &str, seen: Timestamp) -> &[Request] {
        let sent = self.of(verb, "pods", pod);
        let before = &sent[..sent.partition_point(|request| request.at <= seen)];
        let Some(done) = before.iter().rposition(Request::is_done) else {
            return before;
        };
        let earlier = before[..done].iter().rev();
        let same = earlier.take_while(|request| !request.ends_its_decision()).count();
        &before[done - same..=done]
    }

    /// How many of such requests were carried out and answered by then, for each name.
    pub fn carried_out(
        &self,
        verb: &str,
        resource: &str,
        by: Timestamp,
    ) -> impl Iterator<Item = (&str, usize)> {
        let of = self
            .0
            .iter()
            .filter(move |((of_verb, of_resource, _), _)| of_verb == verb && of_resource == resource);
        of.map(move |((_, _, name), requests)| {
            let done = |request: &&Request| request.is_done() && request.answered <= by;
            (name.as_str(), requests.iter().filter(done).count())
        })
    }

    /// Whether a patch that was carried out of one of these pods was on its way at `now`, or was answered up to `shown_within`
    /// before.
    pub fn is_patch_on_its_way<'a>(
        &self,
        mut pods: impl Iterator<Item = &'a str>,
        now: Timestamp,
        shown_within: SignedDuration,
    ) -> bool {
        let is_on_its_way = |request: &Request| {
            request.is_done() && request.at <= now && now.duration_since(request.answered) <= shown_within
        };
        pods.any(|pod| self.of("patch", "pods", pod).iter().any(is_on_its_way))
    }

    /// The patches of pods that failed, of the pods whose names `which` accepts. A binding that fails is tried again.
    pub fn failed_patches(&self, which: impl Fn(&str) -> bool) -> impl Iterator<Item = &Request> {
        let patches = self
            .0
            .iter()
            .filter(move |((verb, resource, name), _)| verb == "patch" && resource == "pods" && which(name));
        let all = patches.flat_map(|(_, requests)| requests);
        all.filter(|request| !request.is_done())
    }
}
