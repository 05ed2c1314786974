//! Injects faults into the events of a watch.

use super::call::Call;
use super::status::status;
use super::{Fault, Faults};
use bytes::{Buf, Bytes, BytesMut};
use futures::stream::{self, Stream, StreamExt};
use http_body_util::BodyDataStream;
use hyper::body::Frame;
use kube::client::Body;
use serde_json::json;
use std::io;

struct Watch {
    faults: Faults,
    call: Call,
    upstream: BodyDataStream<Body>,
    /// What has come of the next line.
    held: BytesMut,
    /// How often watches had been silenced when this one was opened.
    opened: u64,
    ended: bool,
}

/// The stream as the operator is to get it. An error in it breaks the connection.
pub fn events(
    faults: Faults,
    call: Call,
    upstream: Body,
) -> impl Stream<Item = Result<Frame<Bytes>, io::Error>> {
    let watch = Watch {
        opened: faults.silences(),
        faults,
        call,
        upstream: BodyDataStream::new(upstream),
        held: BytesMut::new(),
        ended: false,
    };
    stream::unfold(watch, |mut watch| async {
        let next = watch.next().await?;
        Some((next.map(Frame::data), watch))
    })
}

impl Watch {
    async fn next(&mut self) -> Option<Result<Bytes, io::Error>> {
        while !self.ended {
            let Some(line) = self.line().await else {
                self.ended = true;
                // A silenced watch stays open, even when the API server ends it.
                if self.opened < self.faults.silences() {
                    return std::future::pending().await;
                }
                return None;
            };
            if self.opened < self.faults.silences() {
                self.faults.count(&self.call, super::SILENCED);
                continue;
            }
            let about = if line.starts_with(br#"{"type":"BOOKMARK""#) {
                |fault: &Fault| *fault == Fault::NoBookmarks
            } else {
                Fault::is_of_an_event
            };
            match self.faults.on(&self.call, about) {
                Some(Fault::NoBookmarks) => {}
                Some(Fault::Broken) => {
                    self.ended = true;
                    return Some(Err(io::ErrorKind::ConnectionReset.into()));
                }
                Some(Fault::GoneInside) => {
                    self.ended = true;
                    let event = json!({"type": "ERROR", "object": status(410)});
                    return Some(Ok(format!("{event}\n").into()));
                }
                Some(Fault::EventLate(by)) => {
                    tokio::time::sleep(by).await;
                    return Some(Ok(line));
                }
                _ => return Some(Ok(line)),
            }
        }
        None
    }

    async fn line(&mut self) -> Option<Bytes> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                return Some(self.held.split_to(end + 1).freeze());
            }
            match self.upstream.next().await {
                Some(Ok(chunk)) => self.held.extend_from_slice(chunk.chunk()),
                Some(Err(_)) | None => return None,
            }
        }
    }
}
