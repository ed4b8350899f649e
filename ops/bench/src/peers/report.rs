//! The tables of the comparison, as Markdown, and their place in a document.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path, process::Command};

use anyhow::{Context, Result};

use super::{
    contestant::{Side, Start, version},
    results::{Job, Moment, Results},
    site::CONTROLS,
};
use crate::figure::{bar_text, number};

/// Between these two the document is written by the bench.
const BEGIN: &str = "<!-- bench peers: begin -->";
const END: &str = "<!-- bench peers: end -->";

/// Puts `text` between the markers of the document.
pub(crate) fn write(file: &Path, text: &str) -> Result<()> {
    let document = fs::read_to_string(file).with_context(|| format!("{} can be read", file.display()))?;
    fs::write(file, placed(&document, text)?).with_context(|| format!("{} can be written", file.display()))
}

fn placed(document: &str, text: &str) -> Result<String> {
    let (before, rest) = document.split_once(BEGIN).with_context(|| format!("no marker {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("no marker {END}"))?;
    Ok(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", text.trim()))
}

/// Who was measured, and on what.
fn contest(sides: &[Side], packages: &Path, browser: &Path) -> Result<String> {
    let output = Command::new(browser).arg("--version").output().context("the browser tells its version")?;
    let browser =
        String::from_utf8_lossy(&output.stdout).split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let cores = std::thread::available_parallelism()?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut names = Vec::new();
    for package in sides.iter().filter_map(|side| side.package()) {
        names.push(format!("{package} {}", version(packages, package)?));
    }
    let sandbox = if Start::is_root() {
        "The run was root's, so the browsers of the peers had no sandbox; ours had its own, as an unprivileged user"
    } else {
        "All browsers had their sandbox"
    };
    let kernel = kernel.trim();
    Ok(format!(
        "One run on {cores} cores, Linux {kernel}, {browser}, browserspace {}, {}. {sandbox}.\n",
        env!("CARGO_PKG_VERSION"),
        names.join(", ")
    ))
}

/// What is told of a run.
pub(crate) struct Report<'a> {
    pub(crate) results: &'a Results,
    pub(crate) sides: &'a [Side],
    /// Sizes of the shop.
    pub(crate) rows: &'a [usize],
    /// How often the form was opened and read.
    pub(crate) jobs: usize,
}

impl Report<'_> {
    /// Everything that was measured, by these packages and this browser.
    pub(crate) fn markdown(&self, packages: &Path, browser: &Path) -> Result<String> {
        let parts = [
            contest(self.sides, packages, browser)?,
            self.figures(),
            self.times(),
            self.snapshots(),
            self.controls(),
            self.memory(),
            self.failures(),
        ];
        Ok(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"))
    }

    fn figures(&self) -> String {
        let mut text =
            "### Figures and bars\n\n| figure | value | bar | |\n| --- | ---: | ---: | --- |\n".to_owned();
        for figure in self.results.figures(self.rows) {
            let met = if figure.value.is_nan() {
                "**not measured**"
            } else if figure.is_met() {
                ""
            } else {
                "**missed**"
            };
            line(
                &mut text,
                format_args!(
                    "| `{}` | {} | {} | {met} |",
                    figure.figure,
                    number(figure.value),
                    bar_text(figure.bar)
                ),
            );
        }
        text
    }

    fn times(&self) -> String {
        let mut text = format!(
            "### Time\n\nMilliseconds of the wall clock, p50; in brackets the CPU that it took, mean: of everything that \
             is not the browser + of the browser.\n\n{}",
            self.head("job")
        );
        let mut jobs =
            vec![Job::Navigate, Job::Snapshot, Job::Fill, Job::Click, Job::Login, Job::Cold, Job::Create];
        jobs.extend(
            self.rows.iter().flat_map(|rows| [Job::Load(*rows), Job::First(*rows), Job::Warm(*rows)]),
        );
        for job in jobs {
            let cells = self.sides.iter().map(|side| self.time(job, *side));
            line(&mut text, format_args!("| {job} | {} |", cells.collect::<Vec<_>>().join(" | ")));
        }
        text
    }

    fn time(&self, job: Job, side: Side) -> String {
        let p50 = self.results.p50(job, side);
        let failed = self.results.failures().any(|(of, who, ..)| (of, who) == (job, side));
        match self.results.cpu(job, side) {
            None if failed => "failed".to_owned(),
            None => "–".to_owned(),
            Some(_) if job == Job::Create => format!("{p50:.0}"),
            Some(cpu) => format!("{p50:.0} ({:.0} + {:.0})", cpu.own_ms, cpu.browser_ms),
        }
    }

    fn snapshots(&self) -> String {
        let mut text = "### Size of a snapshot\n\nAll that the agent is given for the page, in bytes. A row is there if \
             its link, both its texts, its field and its button are.\n\n\
             | rows | side | asked | bytes | a row | rows in it | values of fields | addresses of links | where rows begin |\n\
             | ---: | --- | --- | ---: | ---: | ---: | --- | --- | --- |\n"
            .to_owned();
        let yes = |is: bool| if is { "yes" } else { "no" };
        for (rows, side, how, bytes, content) in &self.results.contents {
            line(
                &mut text,
                format_args!(
                    "| {rows} | {} | {how} | {bytes} | {} | {} | {} | {} | {} |",
                    side.name(),
                    bytes / rows.max(&1),
                    content.rows,
                    yes(content.values),
                    yes(content.addresses),
                    yes(content.row_borders)
                ),
            );
        }
        text
    }

    fn controls(&self) -> String {
        if self.results.controls.is_empty() {
            return String::new();
        }
        let head = "### Controls in frames and shadow roots\n\nClicked by name; the page tells the server of each click.\n\n";
        let mut text = format!("{head}| side | {} | reached |\n| --- |", CONTROLS.join(" | "));
        text.push_str(&" --- |".repeat(CONTROLS.len() + 1));
        text.push('\n');
        for (side, reached) in &self.results.controls {
            let cells = reached.iter().map(|reached| if *reached { "yes" } else { "**no**" });
            let count = reached.iter().filter(|reached| **reached).count();
            let cells = cells.collect::<Vec<_>>().join(" | ");
            line(&mut text, format_args!("| {} | {cells} | {count} of {} |", side.name(), reached.len()));
        }
        text
    }

    fn memory(&self) -> String {
        let jobs = self.jobs;
        let mut text = format!(
            "### Memory\n\nMiB: resident memory of everything that is not the browser (in brackets the browser's \
             proportional share), after the first rounds, after opening and reading the form {jobs} times, and after the \
             largest page.\n\n| side | first rounds | after {jobs} | after the largest page |\n| --- | ---: | ---: | ---: |\n"
        );
        for side in self.sides {
            let cells = [Moment::Before, Moment::After, Moment::Large].map(|moment| {
                let memory = self.results.memory.get(&(moment, *side));
                memory.map_or("–".to_owned(), |memory| {
                    let own = if *side == Side::Floor { 0.0 } else { memory.own_rss };
                    format!("{own:.0} ({:.0})", memory.browser_pss)
                })
            });
            line(&mut text, format_args!("| {} | {} |", side.name(), cells.join(" | ")));
        }
        text
    }

    fn failures(&self) -> String {
        let mut text = String::new();
        let mut told = BTreeSet::new();
        for (job, side, count, why) in self.results.failures() {
            let why: String =
                why.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
            if told.insert((job, side)) {
                line(&mut text, format_args!("- {}, {job}, {count} times: {why}", side.name()));
            }
        }
        if text.is_empty() { text } else { format!("### What failed\n\n{text}") }
    }

    fn head(&self, first: &str) -> String {
        let names: Vec<&str> = self.sides.iter().map(|side| side.name()).collect();
        format!("| {first} | {} |\n| --- |{}\n", names.join(" | "), " ---: |".repeat(names.len()))
    }
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    writeln!(text, "{arguments}").expect("writing to a string succeeds");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_is_replaced_and_without_them_nothing() {
        let document = format!("# Ours\n\n{BEGIN}\nold\n{END}\nend\n");
        let placed_once = placed(&document, "new\n").expect("both markers are there");
        assert_eq!(placed_once, format!("# Ours\n\n{BEGIN}\n\nnew\n\n{END}\nend\n"));
        assert_eq!(placed(&placed_once, "new").expect("still there"), placed_once);
        assert!(placed("# Ours\n", "new").is_err());
        assert!(placed(BEGIN, "new").is_err());
    }
}
