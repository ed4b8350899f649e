//! A figure, its bar, and how both are printed.

/// On which side of the bar a figure must be.
#[derive(Clone, Copy)]
pub(crate) enum Bar {
    /// It must not be less.
    AtLeast(f64),
    /// It must not be more.
    AtMost(f64),
    /// It is there to be seen.
    None,
}

impl Bar {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bar) => value >= bar,
            Self::AtMost(bar) => value <= bar,
            Self::None => true,
        }
    }
}

/// One measured number.
pub(crate) struct Figure {
    pub(crate) bench: &'static str,
    pub(crate) figure: &'static str,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) bar: Bar,
}

impl Figure {
    /// Whether it meets its bar.
    pub(crate) fn is_met(&self) -> bool {
        self.bar.is_met_by(self.value)
    }
}

/// Prints a table, or one line of JSON per figure.
pub(crate) fn print(figures: &[Figure], json: bool) {
    if !json {
        println!("{:<6} {:<26} {:>14} {:<8} {:>12}", "bench", "figure", "value", "unit", "bar");
    }
    for figure in figures {
        if json {
            println!("{}", to_json(figure));
        } else {
            let (bar, met) = (bar_text(figure.bar), figure.is_met());
            let Figure { bench, figure, value, unit, .. } = figure;
            let missed = if met { "" } else { "  MISSED" };
            println!("{bench:<6} {figure:<26} {:>14} {unit:<8} {bar:>12}{missed}", number(*value));
        }
    }
}

fn to_json(figure: &Figure) -> serde_json::Value {
    let bar = match figure.bar {
        Bar::AtLeast(bar) | Bar::AtMost(bar) => Some(bar),
        Bar::None => None,
    };
    serde_json::json!({
        "bench": figure.bench,
        "figure": figure.figure,
        "value": figure.value,
        "unit": figure.unit,
        "bar": bar,
    })
}

/// The bar as a condition.
pub(crate) fn bar_text(bar: Bar) -> String {
    match bar {
        Bar::AtLeast(bar) => format!(">= {}", number(bar)),
        Bar::AtMost(bar) => format!("<= {}", number(bar)),
        Bar::None => String::new(),
    }
}

/// A number with as many digits as it is worth.
pub(crate) fn number(value: f64) -> String {
    if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

/// The middle of these; the mean of both middles of an even count. None of them is not a number.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    }
}
