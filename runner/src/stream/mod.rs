//! Bytes on their way: pipeline, codecs, checksums.

pub mod checksum;
pub mod codec;
pub mod filter;
pub mod measured;
pub mod openssl;
pub mod pipeline;
