//! Log lines to the standard error, traces to a collector where one is configured, and the metrics recorder.
//!
//! Every request has a trace id, with or without a collector: the id in an event is the id of its request. What may
//! reach a span, a metric or a line is ruled by type (`Redacted`), not here; here only the ends of the wires are joined.

mod collector;

use std::time::Duration;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use opentelemetry::{KeyValue, trace::TracerProvider};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracerProvider},
};
use tracing_subscriber::{Layer, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};
use url::Url;

use crate::config::{Config, LogFormat};

const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);
/// Bounds of the latency histograms, in seconds: from a cached answer to the longest task.
const LATENCY_BOUNDS_SECONDS: [f64; 14] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0, 120.0, 600.0];
/// Modules whose spans and lines would tell what passes through them, or would trace the export of traces.
const SILENCED: [&str; 6] = ["hyper", "hyper_util", "reqwest", "h2", "opentelemetry_sdk", "sled"];

/// Why telemetry did not start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The exporter refused its settings.
    #[error("the trace exporter can not be made")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// The recorder refused its settings, or another one is installed in this process.
    #[error("the metrics recorder can not be installed")]
    Recorder(#[from] metrics_exporter_prometheus::BuildError),
    /// Another subscriber is installed in this process.
    #[error("the log subscriber can not be installed")]
    Subscriber(#[from] tracing_subscriber::util::TryInitError),
}

/// The running telemetry; ends with [`stop`](Self::stop).
pub struct Telemetry {
    provider: SdkTracerProvider,
    metrics: PrometheusHandle,
}

impl Telemetry {
    /// Installs subscriber, tracer and recorder for the whole process; once.
    ///
    /// # Errors
    /// [`TelemetryError`]: a setting is not usable, or the process has telemetry already.
    pub fn start(config: &Config) -> Result<Self, TelemetryError> {
        let provider = tracer_provider(config.otlp_endpoint.as_ref())?;
        opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
        // Without a collector nobody would see the spans, and making them costs each task more than its rules do. The
        // trace ids in the events do not need them.
        let traces = config.otlp_endpoint.is_some().then(|| {
            tracing_opentelemetry::layer()
                .with_tracer(provider.tracer("browserspace"))
                .with_location(false)
                .with_threads(false)
                .with_tracked_inactivity(false)
                .with_filter(quiet(Targets::new().with_default(tracing::Level::INFO)))
        });
        let lines = match config.log_format {
            LogFormat::Pretty => lines().compact().boxed(),
            LogFormat::Json => {
                lines().json().flatten_event(true).with_current_span(true).with_span_list(false).boxed()
            }
        };
        let lines = lines.with_filter(quiet(filter(&config.log_filter)));
        tracing_subscriber::registry().with(traces).with(lines).try_init()?;
        let metrics = PrometheusBuilder::new().set_buckets(&LATENCY_BOUNDS_SECONDS)?.install_recorder()?;
        if config.otlp_endpoint.is_some() {
            collector::describe();
        }
        Ok(Self { provider, metrics })
    }

    /// What `/metrics` prints.
    #[must_use]
    pub fn metrics(&self) -> PrometheusHandle {
        self.metrics.clone()
    }

    /// Hands over what is not exported yet, within a bounded time.
    pub async fn stop(self) {
        // The exporter blocks its caller; the answer does not matter any more, there is nobody left to tell.
        let provider = self.provider;
        let _ = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FLUSH_TIMEOUT)).await;
    }
}

fn tracer_provider(endpoint: Option<&Url>) -> Result<SdkTracerProvider, TelemetryError> {
    let resource = Resource::builder()
        .with_service_name("browserspace")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let builder = SdkTracerProvider::builder()
        .with_resource(resource)
        .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)));
    let Some(endpoint) = endpoint else {
        return Ok(builder.build());
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(traces_url(endpoint))
        .with_timeout(EXPORT_TIMEOUT)
        .build()?;
    Ok(builder.with_span_processor(collector::processor(exporter)).build())
}

/// OTLP 1.0, section "OTLP/HTTP request": the base URL and `/v1/traces`, unless it is already there.
fn traces_url(endpoint: &Url) -> String {
    let mut url = endpoint.clone();
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/v1/traces") {
        url.set_path(&format!("{path}/v1/traces"));
    }
    url.into()
}

fn lines<S>() -> tracing_subscriber::fmt::Layer<
    S,
    tracing_subscriber::fmt::format::DefaultFields,
    tracing_subscriber::fmt::format::Format,
    fn() -> std::io::Stderr,
> {
    let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt::layer().with_writer(std::io::stderr as fn() -> std::io::Stderr).with_ansi(colour)
}

fn filter(text: &str) -> Targets {
    text.parse().unwrap_or_else(|_| Targets::new().with_default(tracing::Level::INFO))
}

fn quiet(filter: Targets) -> Targets {
    filter.with_targets(SILENCED.map(|name| (name, tracing::Level::WARN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_collector_is_added_once() {
        for (given, wanted) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://collector/otlp/", "http://collector/otlp/v1/traces"),
            ("https://collector/v1/traces", "https://collector/v1/traces"),
        ] {
            assert_eq!(traces_url(&given.parse().expect("a URL")), wanted);
        }
    }
}
