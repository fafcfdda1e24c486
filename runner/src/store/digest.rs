//! Content-MD5 on what is written to S3. A bucket with Object Lock takes nothing without a checksum
//! of the body, and this is the one that every store with this protocol knows; it also has the store
//! refuse what was damaged on its way. OpenDAL sends it for whole objects only and not for parts.

use base64::Engine as _;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use md5::{Digest as _, Md5};
use opendal::{Buffer, HttpBody, HttpTransport, HttpTransporter, Result};

/// A transport that adds it.
pub(super) struct Digesting(pub(super) HttpTransporter);

impl HttpTransport for Digesting {
    async fn fetch(&self, mut request: Request<Buffer>) -> Result<Response<HttpBody>> {
        let name = HeaderName::from_static("content-md5");
        if request.method() == Method::PUT && !request.headers().contains_key(&name) {
            let mut hash = Md5::new();
            for chunk in request.body().clone() {
                hash.update(&chunk);
            }
            let text = base64::engine::general_purpose::STANDARD.encode(hash.finalize());
            // It is added after signing: signature version 4 wants only x-amz headers signed.
            if let Ok(value) = HeaderValue::from_str(&text) {
                request.headers_mut().insert(name, value);
            }
        }
        self.0.fetch(request).await
    }
}
