//! Replaces bytes that are not UTF-8 in the API server's answers.
//!
//! The API server forwards such bytes where it validates nothing, as in the `managedFields` of a PodTemplate's
//! template. One such object would make every list unreadable.

use axum::body::{Bytes, HttpBody};
use http_body_util::BodyExt;

/// The body with U+FFFD for bytes that are not UTF-8.
pub fn as_text<B: HttpBody<Data = Bytes> + Send + 'static>(
    body: B,
) -> impl HttpBody<Data = Bytes, Error = B::Error> + Send + 'static {
    let mut held = Vec::new();
    body.map_frame(move |frame| frame.map_data(|data| text(&mut held, data)))
}

/// `held` and `data` as text. The beginning of a character is held until its end arrives.
fn text(held: &mut Vec<u8>, data: Bytes) -> Bytes {
    if held.is_empty() && str::from_utf8(&data).is_ok() {
        return data;
    }
    let mut bytes = std::mem::take(held);
    bytes.extend_from_slice(&data);
    *held = bytes.split_off(bytes.len() - begun(&bytes));
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Number of bytes at the end that begin a character: at most three.
fn begun(bytes: &[u8]) -> usize {
    let last = bytes
        .utf8_chunks()
        .last()
        .map(|chunk| chunk.invalid())
        .unwrap_or_default();
    let is_incomplete = str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    if is_incomplete { last.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(frames: &[&[u8]]) -> String {
        let mut held = Vec::new();
        let frames = frames
            .iter()
            .map(|frame| text(&mut held, Bytes::copy_from_slice(frame)));
        frames
            .map(|frame| String::from_utf8(frame.into()).unwrap_or_else(|error| format!("({error})")))
            .collect()
    }

    #[test]
    fn text_is_left_as_it_is_wherever_it_is_cut() {
        let written = "wärme für 沙箱 🧊, twice: wärme";
        for cut in 0..=written.len() {
            let (before, after) = written.as_bytes().split_at(cut);
            assert_eq!(read(&[before, after]), written, "cut at {cut}");
        }
        let bytes: Vec<_> = written.as_bytes().chunks(1).collect();
        assert_eq!(read(&bytes), written);
    }

    #[test]
    fn what_is_no_text_is_replaced_and_what_stands_beside_it_kept() {
        assert_eq!(read(&[b"{\"f:\xff\":{}}"]), "{\"f:\u{fffd}\":{}}");
        assert_eq!(read(&[b"a\xe4", b"b"]), "a\u{fffd}b");
        assert_eq!(read(&[b"a\xf0\x9f\xa7", b"\xff."]), "a\u{fffd}\u{fffd}.");
    }
}
