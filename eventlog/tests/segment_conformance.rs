//! The log on disk keeps the contract of the log: in one segment, and across many with everything in the index.

use std::sync::Arc;

use async_trait::async_trait;
use eventlog::{EventLog, OpenOptions, SegmentLog, conformance::Harness};

mod support;

struct Segments {
    folder: tempfile::TempDir,
    options: fn(&std::path::Path) -> OpenOptions,
}

impl Segments {
    fn new(options: fn(&std::path::Path) -> OpenOptions) -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder"), options }
    }
}

#[async_trait]
impl Harness for Segments {
    async fn open(&self) -> Arc<dyn EventLog> {
        Arc::new(SegmentLog::open((self.options)(self.folder.path())).expect("the log opens"))
    }

    async fn reopen(&self, log: Arc<dyn EventLog>) -> Arc<dyn EventLog> {
        log.close().await;
        self.open().await
    }
}

mod one_segment {
    use super::{Segments, support};
    eventlog::conformance_tests!(Segments::new(support::options));
}

mod many_segments {
    use super::{Segments, support};
    eventlog::conformance_tests!(Segments::new(support::tiny));
}
