//! What was measured, and the figures that are made of it.

use std::{collections::BTreeMap, fmt};

use super::{
    contestant::Side,
    site::Content,
    tree::{Cpu, Memory},
};
use crate::figure::{Bar, Figure, median};

/// The first turns of a side, which are not counted where there are more.
const WARM_UP: usize = 2;

/// What is done in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Job {
    Navigate,
    Snapshot,
    Fill,
    Click,
    Login,
    Cold,
    /// From the create of a Space to its first snapshot.
    Create,
    /// That, and its close.
    CreateAll,
    /// Opening the form and reading it, many times.
    Again,
    Controls,
    Load(usize),
    First(usize),
    Warm(usize),
    Smaller(usize),
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Navigate => f.write_str("navigate"),
            Self::Snapshot => f.write_str("snapshot of the form"),
            Self::Fill => f.write_str("fill five fields"),
            Self::Click => f.write_str("click until the effect is seen"),
            Self::Login => f.write_str("login over three pages"),
            Self::Cold => f.write_str("from nothing to the first snapshot"),
            Self::Create | Self::CreateAll => f.write_str("from create to the first snapshot"),
            Self::Again => f.write_str("open and read, many times"),
            Self::Controls => f.write_str("controls in frames and shadow roots"),
            Self::Load(rows) => write!(f, "open {rows} rows"),
            Self::First(rows) => write!(f, "first snapshot of {rows} rows"),
            Self::Warm(rows) => write!(f, "snapshot of {rows} rows"),
            Self::Smaller(rows) => write!(f, "other snapshot of {rows} rows"),
        }
    }
}

/// When memory is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    /// After the first rounds.
    Before,
    /// After many jobs.
    After,
    /// After the largest page so far.
    Large,
}

/// One turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) ms: f64,
    pub(crate) cpu: Cpu,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Results {
    samples: BTreeMap<(Job, Side), Vec<Sample>>,
    failures: BTreeMap<(Job, Side), (usize, String)>,
    /// Rows, side, how it was asked, bytes of the answer, and what it held.
    pub(crate) contents: Vec<(usize, Side, &'static str, usize, Content)>,
    pub(crate) controls: BTreeMap<Side, Vec<bool>>,
    pub(crate) memory: BTreeMap<(Moment, Side), Memory>,
}

impl Results {
    /// Remembers a turn.
    pub(crate) fn add(&mut self, job: Job, side: Side, sample: Sample) {
        self.samples.entry((job, side)).or_default().push(sample);
    }

    /// Remembers a failure; the first of a kind is told.
    pub(crate) fn fail(&mut self, job: Job, side: Side, why: String) {
        self.failures.entry((job, side)).or_insert((0, why)).0 += 1;
    }

    /// The failures, with how often and why.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (Job, Side, usize, &str)> {
        self.failures.iter().map(|((job, side), (count, why))| (*job, *side, *count, why.as_str()))
    }

    fn counted(&self, job: Job, side: Side) -> &[Sample] {
        let samples = self.samples.get(&(job, side)).map(Vec::as_slice).unwrap_or_default();
        if samples.len() > 4 * WARM_UP { &samples[WARM_UP..] } else { samples }
    }

    /// The median time of a job in milliseconds; not a number where it was never done.
    pub(crate) fn p50(&self, job: Job, side: Side) -> f64 {
        let times: Vec<f64> = self.counted(job, side).iter().map(|sample| sample.ms).collect();
        if times.is_empty() { f64::NAN } else { median(times) }
    }

    /// The mean CPU of a job; processes tell it in steps of 10 ms, which a median would not average out.
    pub(crate) fn cpu(&self, job: Job, side: Side) -> Option<Cpu> {
        let samples = self.counted(job, side);
        let count = f64::from(u32::try_from(samples.len()).ok()?);
        let mean = |of: fn(&Cpu) -> f64| samples.iter().map(|sample| of(&sample.cpu)).sum::<f64>() / count;
        (count > 0.0).then(|| Cpu { own_ms: mean(|cpu| cpu.own_ms), browser_ms: mean(|cpu| cpu.browser_ms) })
    }

    /// The time of the fastest peer.
    pub(crate) fn best(&self, job: Job) -> f64 {
        smallest(Side::PEERS.map(|side| self.p50(job, side)))
    }

    /// The bytes of the smallest answer of a side that has every row; with `addresses`, of those that tell them.
    pub(crate) fn bytes(&self, rows: usize, sides: &[Side], addresses: bool) -> f64 {
        let whole = self.contents.iter().filter(|(of, side, _, _, content)| {
            *of == rows && sides.contains(side) && content.rows == rows && (content.addresses || !addresses)
        });
        smallest(whole.map(|(_, _, _, bytes, _)| f64::from(u32::try_from(*bytes).unwrap_or(u32::MAX))))
    }

    fn own_rss(&self, moment: Moment, side: Side) -> f64 {
        self.memory.get(&(moment, side)).map_or(f64::NAN, |memory| memory.own_rss)
    }

    /// The figures of the run. One that could not be measured is not a number, and misses its bar.
    pub(crate) fn figures(&self, rows: &[usize]) -> Vec<Figure> {
        let over = |job: Job, of: f64| self.p50(job, Side::Ours) / of;
        let peers = |job: Job| over(job, self.best(job));
        let floor = |job: Job| over(job, self.p50(job, Side::Floor));
        let mut figures = vec![
            ratio("navigate_p50_ratio", peers(Job::Navigate), Bar::AtMost(1.0)),
            ratio("fill_p50_ratio", peers(Job::Fill), Bar::AtMost(1.0)),
            ratio("click_p50_ratio", peers(Job::Click), Bar::AtMost(1.0)),
            ratio("login_p50_ratio", peers(Job::Login), Bar::AtMost(1.0)),
            ratio("navigate_floor_ratio", floor(Job::Navigate), Bar::AtMost(1.3)),
            ratio("fill_floor_ratio", floor(Job::Fill), Bar::AtMost(1.3)),
            ratio("click_floor_ratio", floor(Job::Click), Bar::AtMost(1.3)),
            ratio("login_floor_ratio", floor(Job::Login), Bar::AtMost(1.3)),
            ratio("create_to_snapshot_ratio", over(Job::Create, self.best(Job::Cold)), Bar::AtMost(0.5)),
        ];
        for (rows, time, bytes, bar) in [
            (200, "snapshot_time_ratio_200", "snapshot_bytes_ratio_200", Bar::None),
            (2_000, "snapshot_time_ratio_2000", "snapshot_bytes_ratio_2000", Bar::AtMost(0.5)),
            (20_000, "snapshot_time_ratio_20000", "snapshot_bytes_ratio_20000", Bar::None),
        ]
        .into_iter()
        .filter(|(size, ..)| rows.contains(size))
        {
            let smallest = self.bytes(rows, &Side::PEERS, false);
            figures.push(ratio(bytes, self.bytes(rows, &[Side::Ours], false) / smallest, Bar::AtMost(0.8)));
            figures.push(ratio(time, peers(Job::Warm(rows)), bar));
        }
        let node = smallest(Side::NODE.map(|side| self.own_rss(Moment::After, side)));
        let after = self.own_rss(Moment::After, Side::Ours);
        let growth = after / self.own_rss(Moment::Before, Side::Ours);
        let reached = self
            .controls
            .get(&Side::Ours)
            .map_or(f64::NAN, |reached| reached.iter().map(|reached| f64::from(u8::from(*reached))).sum());
        figures.push(ratio("rss_ratio", after / node, Bar::AtMost(0.2)));
        figures.push(ratio("rss_growth_ratio", growth, Bar::AtMost(1.1)));
        let (figure, unit, bar) = ("controls_reached", "of 7", Bar::AtLeast(7.0));
        figures.push(Figure { bench: "browser", figure, value: reached, unit, bar });
        figures
    }
}

fn ratio(figure: &'static str, value: f64, bar: Bar) -> Figure {
    Figure { bench: "browser", figure, value, unit: "ratio", bar }
}

/// The smallest of these; not a number where there is none.
fn smallest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().filter(|value| !value.is_nan()).fold(f64::NAN, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(results: &Results, name: &str) -> Option<(f64, bool)> {
        let figures = results.figures(&[200]);
        figures.iter().find(|figure| figure.figure == name).map(|figure| (figure.value, figure.is_met()))
    }

    fn done(results: &mut Results, job: Job, side: Side, ms: f64) {
        results.add(job, side, Sample { ms, cpu: Cpu::default() });
    }

    #[test]
    fn a_ratio_is_ours_over_the_best_peer_and_a_peer_that_failed_is_none() {
        let mut results = Results::default();
        done(&mut results, Job::Click, Side::Ours, 20.0);
        done(&mut results, Job::Click, Side::AgentBrowser, 40.0);
        done(&mut results, Job::Click, Side::Playwright, 80.0);
        done(&mut results, Job::Click, Side::Floor, 10.0);
        results.fail(Job::Click, Side::Devtools, "no end within 60 s".to_owned());
        assert_eq!(value(&results, "click_p50_ratio"), Some((0.5, true)));
        assert_eq!(value(&results, "click_floor_ratio"), Some((2.0, false)));
    }

    #[test]
    fn what_was_not_measured_misses_its_bar_and_what_was_not_asked_for_is_no_figure() {
        let results = Results::default();
        let (not_measured, is_met) = value(&results, "navigate_p50_ratio").expect("a figure");
        assert!(not_measured.is_nan() && !is_met);
        assert!(value(&results, "snapshot_bytes_ratio_200").is_some());
        assert_eq!(value(&results, "snapshot_bytes_ratio_2000"), None);
    }

    #[test]
    fn only_an_answer_with_every_row_counts_as_small() {
        let mut results = Results::default();
        let content = |rows| Content { rows, addresses: false, values: true, row_borders: false };
        results.contents.push((200, Side::Ours, "as it comes", 800, content(200)));
        results.contents.push((200, Side::AgentBrowser, "as it comes", 2_000, content(200)));
        results.contents.push((200, Side::AgentBrowser, "-i", 100, content(0)));
        assert_eq!(value(&results, "snapshot_bytes_ratio_200"), Some((0.4, true)));
    }
}
