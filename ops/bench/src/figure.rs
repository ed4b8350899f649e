//! One measured figure, and the bar that it has to meet.

use serde_json::json;

/// What a figure has to meet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bar {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

/// One figure.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    bench: &'static str,
    name: &'static str,
    value: f64,
    unit: &'static str,
    bar: Option<Bar>,
}

impl Figure {
    /// A figure; one without a bar is the baseline of another.
    pub(crate) const fn new(
        bench: &'static str,
        name: &'static str,
        value: f64,
        unit: &'static str,
        bar: Option<Bar>,
    ) -> Self {
        Self { bench, name, value, unit, bar }
    }

    /// Whether it meets its bar.
    pub(crate) fn is_met(&self) -> bool {
        match self.bar {
            None => true,
            Some(Bar::AtLeast(bar)) => self.value >= bar,
            Some(Bar::AtMost(bar)) => self.value <= bar,
        }
    }

    /// One line of JSON.
    pub(crate) fn json(&self) -> String {
        let bar = self.bar.map(|bar| match bar {
            Bar::AtLeast(bar) | Bar::AtMost(bar) => rounded(bar),
        });
        json!({
            "bench": self.bench, "figure": self.name, "value": rounded(self.value), "unit": self.unit, "bar": bar
        })
        .to_string()
    }

    /// One line for a person.
    pub(crate) fn line(&self) -> String {
        let bar = match self.bar {
            None => String::new(),
            Some(Bar::AtLeast(bar)) => format!("at least {bar:.3}"),
            Some(Bar::AtMost(bar)) => format!("at most {bar:.3}"),
        };
        let met = if self.is_met() { "" } else { "  MISSED" };
        format!("{:<8} {:<22} {:>12.3} {:<5} {bar}{met}", self.bench, self.name, self.value, self.unit)
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
