//! A watch, line by line: each event is cut before it goes on.

use std::sync::Arc;

use axum::body::{Body, BodyDataStream, Bytes};
use futures::StreamExt as _;
use futures::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::cut::{self, Kinds};
use super::{AnswerError, LARGE, OBJECT};

/// The lines of `body`, each cut. An event that can't be read ends the stream with an error: the
/// watch is begun anew.
pub(super) fn cut(body: Body, kinds: Kinds, large: Arc<Semaphore>) -> Body {
    let lines = Lines {
        stream: body.into_data_stream(),
        text: Vec::new(),
        looked: 0,
        kinds,
        large,
        held: None,
        ended: false,
    };
    Body::from_stream(stream::unfold(lines, |mut lines| async {
        let next = lines.next().await?;
        lines.ended |= next.is_err();
        Some((next, lines))
    }))
}

struct Lines {
    stream: BodyDataStream,
    /// What came and was not yet passed on.
    text: Vec<u8>,
    /// So much of it holds no line end.
    looked: usize,
    kinds: Kinds,
    large: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
    ended: bool,
}

impl Lines {
    async fn next(&mut self) -> Option<Result<Bytes, AnswerError>> {
        loop {
            if let Some(line) = self.line() {
                let slim = if line.iter().all(u8::is_ascii_whitespace) {
                    Ok(vec![])
                } else {
                    cut::event(&line, self.kinds)
                };
                drop(line);
                self.held = None;
                if self.ended && slim.is_err() {
                    // The server went away in the midst of it; the watch goes on where it was.
                    return None;
                }
                return Some(slim.map_err(AnswerError::from).map(|mut slim| {
                    slim.push(b'\n');
                    slim.into()
                }));
            }
            if self.ended {
                return None;
            }
            if self.text.len() > OBJECT {
                return Some(Err(AnswerError::TooLarge(OBJECT)));
            }
            if self.text.len() > LARGE && self.held.is_none() {
                self.held = self.large.clone().acquire_owned().await.ok();
            }
            match self.stream.next().await {
                Some(Ok(part)) => self.text.extend_from_slice(&part),
                Some(Err(error)) => return Some(Err(AnswerError::Broken(error))),
                None => self.ended = true,
            }
        }
    }

    /// The next whole line; at the end of the stream whatever is left.
    fn line(&mut self) -> Option<Vec<u8>> {
        let rest = self.text.get(self.looked..).unwrap_or_default();
        let Some(at) = rest.iter().position(|b| *b == b'\n') else {
            self.looked = self.text.len();
            if self.ended && !self.text.is_empty() {
                self.looked = 0;
                return Some(std::mem::take(&mut self.text));
            }
            return None;
        };
        let at = self.looked + at;
        self.looked = 0;
        let after = self.text.split_off(at + 1);
        let mut line = std::mem::replace(&mut self.text, after);
        line.pop();
        Some(line)
    }
}
