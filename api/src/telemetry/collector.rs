//! The way of spans to the collector: what does not arrive is counted, and said once, not for every batch.
//!
//! ```text
//! span ends ─► Gate (counts what waits; full: lost) ─► the SDK's batches ─► Watched exporter ─► collector
//! ```
//!
//! The SDK drops spans without a figure when its queue is full, so the gate in front keeps that queue from filling.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use metrics::counter;
use opentelemetry::Context;
use opentelemetry_sdk::{
    Resource,
    error::{OTelSdkError, OTelSdkResult},
    trace::{BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor},
};
use tracing::{info, warn};

/// Spans that wait for the collector at most; about 1 KiB each.
const WAITING_MAX: usize = 2_048;
const LOST: &str = "browserspace_spans_lost_total";

/// The figure, from the first second on.
pub(super) fn describe() {
    metrics::describe_counter!(LOST, "Spans that the collector of traces did not take");
    counter!(LOST).absolute(0);
}

/// What stands between the tracer and the collector.
pub(super) fn processor(exporter: impl SpanExporter + 'static) -> impl SpanProcessor {
    let waiting = Arc::new(AtomicUsize::new(0));
    let watched = Watched { exporter, waiting: Arc::clone(&waiting), is_failing: AtomicBool::new(false) };
    let config = BatchConfigBuilder::default().with_max_queue_size(WAITING_MAX).build();
    Gate { next: BatchSpanProcessor::new(watched, config), waiting }
}

#[derive(Debug)]
struct Gate {
    next: BatchSpanProcessor,
    waiting: Arc<AtomicUsize>,
}

impl SpanProcessor for Gate {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.next.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        if self.waiting.fetch_add(1, Ordering::AcqRel) >= WAITING_MAX {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            counter!(LOST).increment(1);
            return;
        }
        self.next.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.next.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.next.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.next.set_resource(resource);
    }
}

/// An exporter whose failures are seen.
struct Watched<E> {
    exporter: E,
    waiting: Arc<AtomicUsize>,
    is_failing: AtomicBool,
}

impl<E: fmt::Debug> fmt::Debug for Watched<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("exporter", &self.exporter).finish_non_exhaustive()
    }
}

impl<E: SpanExporter> SpanExporter for Watched<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        self.waiting.fetch_sub(count, Ordering::AcqRel);
        let outcome = self.exporter.export(batch).await;
        self.note(count, &outcome);
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl<E> Watched<E> {
    fn note(&self, spans: usize, outcome: &OTelSdkResult) {
        match outcome {
            Ok(()) => {
                if self.is_failing.swap(false, Ordering::AcqRel) {
                    info!("The collector takes traces again.");
                }
            }
            Err(error) => {
                counter!(LOST).increment(spans as u64);
                if !self.is_failing.swap(true, Ordering::AcqRel) {
                    warn!(
                        reason = reason(error),
                        "The collector takes no traces. They are lost and counted ({LOST}); all else goes on."
                    );
                }
            }
        }
    }
}

/// In words of our own: the library's text holds the collector's address, and with it perhaps a key.
const fn reason(error: &OTelSdkError) -> &'static str {
    match error {
        OTelSdkError::AlreadyShutdown => "it is shut down",
        OTelSdkError::Timeout(_) => "it did not answer in time",
        OTelSdkError::InternalFailure(_) => "it can not be reached, or refuses what it is sent",
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{Tracer, TracerProvider};
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use parking_lot::Mutex;

    use super::*;

    /// Takes what it is told to take.
    #[derive(Debug, Clone, Default)]
    struct Scripted {
        answers: Arc<Mutex<Vec<bool>>>,
        taken: Arc<AtomicUsize>,
    }

    impl SpanExporter for Scripted {
        async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
            if self.answers.lock().pop().unwrap_or(true) {
                self.taken.fetch_add(batch.len(), Ordering::AcqRel);
                return Ok(());
            }
            Err(OTelSdkError::InternalFailure("http://user:s3cret@collector.example refused".to_owned()))
        }
    }

    /// The figure and the log lines after so many rounds of one span each.
    fn after(answers: &[bool]) -> (String, String, usize) {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let figures = recorder.handle();
        let scripted = Scripted::default();
        *scripted.answers.lock() = answers.iter().rev().copied().collect();
        let watched = Watched {
            exporter: scripted.clone(),
            waiting: Arc::default(),
            is_failing: AtomicBool::new(false),
        };
        let written = Arc::new(Mutex::new(Vec::new()));
        let writer = {
            let written = Arc::clone(&written);
            move || Shared(Arc::clone(&written))
        };
        let lines = tracing_subscriber::fmt().with_writer(writer).with_ansi(false).finish();
        metrics::with_local_recorder(&recorder, || {
            tracing::subscriber::with_default(lines, || {
                for _ in answers {
                    watched.waiting.fetch_add(1, Ordering::AcqRel);
                    let _ = futures::executor::block_on(watched.export(vec![span()]));
                }
            });
        });
        let lines = String::from_utf8(written.lock().clone()).expect("lines are text");
        (figures.render(), lines, scripted.taken.load(Ordering::Acquire))
    }

    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn span() -> SpanData {
        use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status};
        let now = std::time::SystemTime::UNIX_EPOCH;
        SpanData {
            span_context: SpanContext::empty_context(),
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: "a".into(),
            start_time: now,
            end_time: now,
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: Default::default(),
            links: Default::default(),
            status: Status::Unset,
            instrumentation_scope: Default::default(),
        }
    }

    #[test]
    fn a_dead_collector_is_warned_of_once_and_its_return_told_once() {
        let (figures, lines, taken) = after(&[true, false, false, false, true, true, false]);
        assert_eq!(lines.matches("takes no traces").count(), 2, "{lines}");
        assert_eq!(lines.matches("takes traces again").count(), 1, "{lines}");
        assert!(!lines.contains("s3cret"), "{lines}");
        assert!(figures.contains(&format!("{LOST} 4")), "{figures}");
        assert_eq!(taken, 3);
    }

    /// Holds the first batch until it is let go.
    #[derive(Debug)]
    struct Stuck(Arc<Mutex<()>>);

    impl SpanExporter for Stuck {
        async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
            drop(self.0.lock());
            Ok(())
        }
    }

    #[test]
    fn spans_that_find_no_place_to_wait_are_counted() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let figures = recorder.handle();
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock();
        let provider =
            SdkTracerProvider::builder().with_span_processor(processor(Stuck(Arc::clone(&gate)))).build();
        let tracer = provider.tracer("test");
        metrics::with_local_recorder(&recorder, || {
            describe();
            // One batch may be on its way to the collector, and no more.
            for _ in 0..WAITING_MAX * 2 {
                drop(tracer.start("a"));
            }
        });
        drop(held);
        let figures = figures.render();
        let lost = figures.lines().find_map(|line| line.strip_prefix(LOST)).expect("it is told");
        let lost: usize = lost.trim().parse().expect("a number");
        assert!((WAITING_MAX - 512..=WAITING_MAX).contains(&lost), "{figures}");
        provider.shutdown().expect("it ends");
    }
}
