//! A receiver of notices that keeps what came.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// Answers every request with these bytes and keeps what came.
pub struct Recorder {
    pub url: String,
    pub seen: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    /// Answers with `answer`; "never" leaves the connection open.
    pub fn start(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!(
            "http://{}/hook/S3cr3t-token",
            listener.local_addr().unwrap()
        );
        let seen = Arc::new(Mutex::new(vec![]));
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut text = Vec::new();
                let mut buffer = [0; 4096];
                loop {
                    let n = stream.read(&mut buffer).unwrap_or(0);
                    text.extend_from_slice(&buffer[..n]);
                    let whole = String::from_utf8_lossy(&text).into_owned();
                    let length = whole
                        .lines()
                        .find_map(|l| {
                            l.to_lowercase()
                                .strip_prefix("content-length: ")
                                .and_then(|n| n.trim().parse::<usize>().ok())
                        })
                        .unwrap_or(0);
                    if n == 0
                        || whole
                            .split_once("\r\n\r\n")
                            .is_some_and(|(_, body)| body.len() >= length)
                    {
                        break;
                    }
                }
                kept.lock()
                    .unwrap()
                    .push(String::from_utf8_lossy(&text).into_owned());
                if answer == "never" {
                    std::mem::forget(stream);
                } else {
                    let _ = stream.write_all(answer.as_bytes());
                }
            }
        });
        Self { url, seen }
    }

    /// A chat bot that takes everything.
    pub fn good() -> Self {
        Self::start(
            "HTTP/1.1 200 OK\r\ncontent-length: 10\r\nconnection: close\r\n\r\n{\"code\":0}",
        )
    }

    /// One that answers with nothing but success.
    pub fn empty() -> Self {
        Self::start("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    }

    /// The texts a chat bot was sent.
    pub fn texts(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .map(|r| {
                let body: Value =
                    serde_json::from_str(r.split_once("\r\n\r\n").unwrap().1).unwrap();
                body["content"]["text"].as_str().unwrap().to_owned()
            })
            .collect()
    }
}
