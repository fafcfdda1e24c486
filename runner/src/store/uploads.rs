//! Uploads in parts that were begun and never completed. A store keeps their parts, and bills them,
//! until somebody aborts them; OpenDAL has no word for that, so these requests are S3's own.

use bytes::Buf;
use chrono::{DateTime, Utc};
use http::{Method, Request, StatusCode, header};
use opendal::{Buffer, HttpTransporter};
use quick_xml::Reader;
use quick_xml::events::Event;
use reqsign_aws_v4::Credential;
use reqsign_core::{Context, OsEnv, Signer};
use reqsign_file_read_tokio::TokioFileRead;

use crate::store::OpenUpload;

/// What the body of an empty request hashes to, as S3 wants it said.
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The open uploads of a bucket.
pub(super) struct Uploads {
    signer: Signer<Credential>,
    transport: HttpTransporter,
    /// URL of the bucket, without a slash at its end.
    bucket: String,
    /// Prefix of every key of the destination, without slashes around it.
    prefix: String,
}

/// One open upload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Open {
    key: String,
    id: String,
    initiated: Option<DateTime<Utc>>,
}

impl Uploads {
    pub(super) fn new(
        signer: Signer<Credential>,
        transport: HttpTransporter,
        bucket: String,
        prefix: &str,
    ) -> Self {
        let context = Context::new()
            .with_file_read(TokioFileRead)
            .with_http_send(transport.clone())
            .with_env(OsEnv);
        Self {
            signer: signer.with_context(context),
            transport,
            bucket,
            prefix: prefix.trim_matches('/').to_owned(),
        }
    }

    /// Aborts the uploads at or below `directory` that `dead` picks; gives their number.
    ///
    /// # Errors
    /// What the store said.
    pub(super) async fn abort_dead(
        &self,
        directory: &str,
        dead: &(dyn Fn(&OpenUpload) -> bool + Sync),
    ) -> Result<u64, String> {
        let below = |path: &str| match path {
            "" => String::new(),
            path => format!("{path}/"),
        };
        let root = below(&self.prefix);
        let path = format!("{root}{}", below(directory));
        let mut aborted = 0;
        let (found, now) = self.open(&path).await?;
        for open in found {
            let Some(key) = open.key.strip_prefix(&root) else {
                continue;
            };
            let mut upload = OpenUpload {
                key: key.to_owned(),
                begun: open.initiated,
                touched: open.initiated,
                now,
            };
            // Whose last part is asked for only where the begin does not say that it is young.
            if !dead(&upload) {
                continue;
            }
            upload.touched = self.last_part(&open).await?.max(open.initiated);
            if dead(&upload) {
                tracing::info!(
                    key = open.key,
                    "aborting an upload that was never completed"
                );
                self.abort(&open).await?;
                aborted += 1;
            }
        }
        Ok(aborted)
    }

    /// Open uploads of keys that begin so, and the store's time.
    async fn open(&self, prefix: &str) -> Result<(Vec<Open>, Option<DateTime<Utc>>), String> {
        let mut found = vec![];
        let mut marker = String::new();
        loop {
            let query = format!("uploads=&prefix={}{marker}", encode(prefix));
            let (text, now) = self.send(Method::GET, "", &query).await?;
            let page = uploads(&text)?;
            found.extend(page.open);
            match page.next {
                Some((key, id)) => {
                    marker = format!(
                        "&key-marker={}&upload-id-marker={}",
                        encode(&key),
                        encode(&id)
                    );
                }
                None => return Ok((found, now)),
            }
        }
    }

    /// When the youngest part was written.
    async fn last_part(&self, open: &Open) -> Result<Option<DateTime<Utc>>, String> {
        let query = format!("max-parts=1000&uploadId={}", encode(&open.id));
        let mut last = None;
        let mut marker = String::new();
        loop {
            let (text, _) = self
                .send(Method::GET, &open.key, &format!("{query}{marker}"))
                .await?;
            let page = parts(&text)?;
            last = last.max(page.last);
            match page.next {
                Some(next) => marker = format!("&part-number-marker={}", encode(&next)),
                None => return Ok(last),
            }
        }
    }

    async fn abort(&self, open: &Open) -> Result<(), String> {
        let query = format!("uploadId={}", encode(&open.id));
        self.send(Method::DELETE, &open.key, &query)
            .await
            .map(|_| ())
    }

    /// Sends a signed request; gives the answer's text and the store's time.
    async fn send(
        &self,
        method: Method,
        key: &str,
        query: &str,
    ) -> Result<(String, Option<DateTime<Utc>>), String> {
        let path: Vec<String> = key.split('/').map(encode).collect();
        let request = Request::builder()
            .method(&method)
            .uri(format!("{}/{}?{query}", self.bucket, path.join("/")))
            .header("x-amz-content-sha256", EMPTY_SHA256)
            .body(Buffer::new())
            .map_err(|e| e.to_string())?;
        let (mut parts, body) = request.into_parts();
        let signed = self.signer.sign(&mut parts, None).await;
        signed.map_err(|e| e.to_string())?;
        parts.headers.remove(header::HOST);
        let answer = self.transport.send(Request::from_parts(parts, body)).await;
        let (head, body) = answer.map_err(|e| e.to_string())?.into_parts();
        let text = String::from_utf8_lossy(body.to_bytes().chunk()).into_owned();
        // An upload that is gone meanwhile needs no abort.
        let gone = method == Method::DELETE && head.status == StatusCode::NOT_FOUND;
        if !head.status.is_success() && !gone {
            return Err(format!(
                "{}: {}",
                head.status,
                crds::report::clean(&text, 200)
            ));
        }
        let date = head.headers.get(header::DATE).and_then(|d| d.to_str().ok());
        let now = date.and_then(|d| DateTime::parse_from_rfc2822(d).ok());
        Ok((text, now.map(|d| d.to_utc())))
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    open: Vec<Open>,
    next: Option<(String, String)>,
}

fn uploads(text: &str) -> Result<Page, String> {
    let mut page = Page::default();
    let (mut more, mut key, mut id) = (false, String::new(), String::new());
    let mut open = Open::default();
    walk(text, |path, value| match path {
        // In no certain order.
        ["Upload", "Key"] => value.clone_into(&mut open.key),
        ["Upload", "UploadId"] => value.clone_into(&mut open.id),
        ["Upload", "Initiated"] => open.initiated = crds::time::parse_rfc3339(value),
        ["Upload"] => page.open.push(std::mem::take(&mut open)),
        ["IsTruncated"] => more = value == "true",
        ["NextKeyMarker"] => key = value.to_owned(),
        ["NextUploadIdMarker"] => id = value.to_owned(),
        _ => {}
    })?;
    page.next = (more && !key.is_empty()).then_some((key, id));
    Ok(page)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Parts {
    last: Option<DateTime<Utc>>,
    next: Option<String>,
}

fn parts(text: &str) -> Result<Parts, String> {
    let mut page = Parts::default();
    let (mut more, mut next) = (false, None);
    walk(text, |path, value| match path {
        ["Part", "LastModified"] => page.last = page.last.max(crds::time::parse_rfc3339(value)),
        ["IsTruncated"] => more = value == "true",
        ["NextPartNumberMarker"] => next = Some(value.to_owned()),
        _ => {}
    })?;
    page.next = next.filter(|_| more);
    Ok(page)
}

/// Calls `see` with the path below the root and the last text of each element that ends.
fn walk(text: &str, mut see: impl FnMut(&[&str], &str)) -> Result<(), String> {
    let mut reader = Reader::from_str(text);
    let mut path: Vec<String> = vec![];
    let mut value = String::new();
    loop {
        match reader.read_event().map_err(|e| e.to_string())? {
            Event::Start(start) => {
                path.push(start.local_name().into_inner().to_owned());
                value.clear();
            }
            Event::Text(part) => value.push_str(&part),
            Event::GeneralRef(reference) => {
                let whole = format!("&{};", &*reference);
                let plain = quick_xml::escape::unescape(&whole).map_err(|e| e.to_string())?;
                value.push_str(&plain);
            }
            Event::End(_) => {
                let names: Vec<&str> = path.iter().skip(1).map(String::as_str).collect();
                see(&names, value.trim());
                path.pop();
                value.clear();
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// Percent-encoding as S3's signature wants it.
fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    /// The answer in the S3 API reference, ListMultipartUploads, shortened.
    #[test]
    fn a_listing_is_read() {
        let text = "<?xml version=\"1.0\"?>\n<ListMultipartUploadsResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n <Bucket>bucket</Bucket>\n <KeyMarker></KeyMarker>\n <NextKeyMarker>my-movie.m2ts</NextKeyMarker>\n <NextUploadIdMarker>YW55</NextUploadIdMarker>\n <MaxUploads>3</MaxUploads>\n <IsTruncated>true</IsTruncated>\n <Upload>\n <UploadId>XMgb</UploadId>\n <Key>a&amp;b.sql</Key>\n <Initiator><ID>x</ID></Initiator>\n <Initiated>2010-11-10T20:48:33.000Z</Initiated>\n </Upload>\n</ListMultipartUploadsResult>";
        let page = uploads(text).unwrap();
        assert_eq!(page.next, Some(("my-movie.m2ts".into(), "YW55".into())));
        assert_eq!(
            page.open,
            [Open {
                key: "a&b.sql".into(),
                id: "XMgb".into(),
                initiated: crds::time::parse_rfc3339("2010-11-10T20:48:33Z"),
            }]
        );
        assert!(uploads("<a><b>").is_err() || uploads("<a><b>").unwrap() == Page::default());
    }

    #[test]
    fn the_youngest_part_counts() {
        let text = "<ListPartsResult><IsTruncated>false</IsTruncated><NextPartNumberMarker>2</NextPartNumberMarker><Part><PartNumber>1</PartNumber><LastModified>2010-11-10T20:48:34.000Z</LastModified></Part><Part><PartNumber>2</PartNumber><LastModified>2010-11-10T20:48:33.000Z</LastModified></Part></ListPartsResult>";
        let expected = Parts {
            last: crds::time::parse_rfc3339("2010-11-10T20:48:34Z"),
            next: None,
        };
        assert_eq!(parts(text).unwrap(), expected);
    }

    #[test]
    fn keys_are_encoded() {
        assert_eq!(encode("a/b c~é"), "a%2Fb%20c~%C3%A9");
    }
}
