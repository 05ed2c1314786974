//! How often a watch is opened whose API server ends it at once, on a paused clock.

// A test may panic: that is how it fails.
#![allow(clippy::unwrap_used, clippy::panic)]

use bytes::Bytes;
use futures::channel::mpsc::unbounded;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use warmpool::cache::reconcile_request::ReconcileSender;
use warmpool::cache::synced_cache::SharedCache;
use warmpool::cache::watch::{self, WatchContext};
use warmpool::model::stored::StoredPool;

/// What the API server takes for an answer.
const LATENCY: Duration = Duration::from_millis(1);
/// Most requests of one verb in the ten seconds of a test: five with growing pauses, and then one a second.
const MOST: usize = 14;

/// How the API server answers.
#[derive(Clone, Debug)]
enum Answer {
    /// With this code.
    Code(u16),
    /// The list is empty, and the watch is open for so long and then shows this, if anything.
    Watch(Duration, Option<Value>),
}

/// When each list and each watch was requested, since the begin.
#[derive(Clone, Debug, Default)]
struct Requests {
    lists: Vec<Duration>,
    watches: Vec<Duration>,
}

/// Watches pools for `time` through an API server that gives the `n`th watch the answer `answer(n)`; a code answers lists, too.
async fn watched_for(time: Duration, answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Requests {
    let requests: Arc<Mutex<Requests>> = Arc::default();
    let (kept, begin, answer) = (Arc::clone(&requests), Instant::now(), Arc::new(answer));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
        async move {
            sleep(LATENCY).await;
            let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
            let answer = {
                let mut kept = kept.lock().unwrap();
                let answer = answer(kept.watches.len());
                let of_verb = if is_watch {
                    &mut kept.watches
                } else {
                    &mut kept.lists
                };
                of_verb.push(begin.elapsed());
                answer
            };
            Ok::<_, Infallible>(respond(is_watch, answer))
        }
    });
    let ((pools, _pools), (claims, _claims)) = (unbounded(), unbounded());
    let ((failed_writes, _failures), (urgent, _urgent)) = (unbounded(), unbounded());
    let context = WatchContext {
        client: Client::new(service, "default"),
        namespace: None,
        shared: SharedCache::default(),
        to_reconcile: ReconcileSender {
            pools,
            claims,
            failed_writes,
            urgent,
        },
    };
    let ended = timeout(time, watch::run::<StoredPool>(context, |_| {})).await;
    assert!(ended.is_err(), "the watch has ended");
    let requests = requests.lock().unwrap();
    requests.clone()
}

type Frames = stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

fn respond(is_watch: bool, answer: Answer) -> Response<StreamBody<Frames>> {
    let once = |value: &Value| {
        let line = Bytes::from(format!("{value}\n"));
        stream::iter([Ok(Frame::data(line))]).boxed()
    };
    let (code, frames) = match answer {
        Answer::Code(code) => (code, once(&status(code))),
        Answer::Watch(..) if !is_watch => {
            let list = json!({
                "kind": "PoolList", "apiVersion": "warmpool.dev/v1alpha1", "metadata": {"resourceVersion": "1"}, "items": [],
            });
            (200, once(&list))
        }
        Answer::Watch(open, shown) => {
            let end = stream::once(sleep(open)).flat_map(move |()| match &shown {
                Some(shown) => once(shown),
                None => stream::empty().boxed(),
            });
            (200, end.boxed())
        }
    };
    let response = Response::builder().status(code);
    response.body(StreamBody::new(frames)).unwrap()
}

fn status(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "no", "code": code})
}

const AT_ONCE: Duration = Duration::ZERO;
const TEN_SECONDS: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_api_server_ends_at_once_is_opened_at_most_once_a_second() {
    let inside = |code| Some(json!({"type": "ERROR", "object": status(code)}));
    let rows = [
        ("it is empty", Answer::Watch(AT_ONCE, None)),
        ("it holds an error", Answer::Watch(AT_ONCE, inside(500))),
        ("it has expired", Answer::Watch(AT_ONCE, inside(410))),
        ("it is refused", Answer::Code(500)),
        (
            "it is open for half a second",
            Answer::Watch(Duration::from_millis(500), None),
        ),
    ];
    for (what, answer) in rows {
        let requests = watched_for(TEN_SECONDS, move |_| answer.clone()).await;
        let (lists, watches) = (requests.lists.len(), requests.watches.len());
        assert!(
            lists <= MOST && watches <= MOST,
            "I8: {what}: {lists} lists and {watches} watches in 10 s"
        );
        assert!(
            lists.max(watches) >= 9,
            "{what}: {lists} lists and {watches} watches in 10 s"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_has_lasted_is_opened_again_at_once() {
    let lasts = Duration::from_secs(20);
    let requests = watched_for(3 * lasts, move |_| Answer::Watch(lasts, None)).await;
    let (first, second) = (requests.watches.first(), requests.watches.get(1));
    let pause = second.zip(first).map(|(second, first)| *second - *first - lasts);
    assert!(
        pause.is_some_and(|pause| pause < Duration::from_millis(50)),
        "{requests:?}"
    );
    assert_eq!(requests.lists.len(), 1, "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn pauses_begin_anew_once_a_watch_has_lasted() {
    let lasts = Duration::from_secs(20);
    let requests = watched_for(Duration::from_secs(60), move |n| {
        Answer::Watch(if n == 8 { lasts } else { AT_ONCE }, None)
    })
    .await;
    let began = requests.watches.get(8).copied().unwrap_or_default();
    let after = |n: usize| requests.watches.get(n).map(|at| *at - began - lasts);
    assert!(
        after(9).is_some_and(|pause| pause < Duration::from_millis(50)),
        "{requests:?}"
    );
    assert!(
        after(10).is_some_and(|pause| pause < Duration::from_millis(200)),
        "{requests:?}"
    );
}
