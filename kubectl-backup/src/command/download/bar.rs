//! How far a download is.

use crds::download::Header;

use crate::context::Context;
use crate::view::duration::bytes;

/// How far it is, on a terminal.
pub(crate) struct Bar {
    bar: Option<indicatif::ProgressBar>,
    total: u64,
    from: u64,
    since: tokio::time::Instant,
}

impl Bar {
    pub(crate) fn new(context: &Context, header: &Header, from: u64) -> Self {
        Self {
            bar: context.ui.bar(),
            total: header.length,
            from,
            since: tokio::time::Instant::now(),
        }
    }

    pub(crate) fn at(&self, length: u64) {
        let Some(bar) = &self.bar else { return };
        let percent = length.saturating_mul(100) / self.total.max(1);
        let millis = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let rate = length.saturating_sub(self.from).saturating_mul(1000) / millis.max(1);
        bar.set_position(percent);
        bar.set_message(format!(
            "{} / {}  {percent}%  {}/s",
            bytes(signed(length)),
            bytes(signed(self.total)),
            bytes(signed(rate))
        ));
    }

    pub(crate) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

pub(crate) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
