//! The jobs, each done by all sides in turn.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use super::{
    arena::Arena,
    contestant::{Contestant, Side},
    results::{Job, Moment, Sample},
    site::{CONTROLS, Content},
    tree::Cpu,
};

/// How long a job on a small page may take.
const SMALL: Duration = Duration::from_secs(60);

/// How long a job on the largest page may take.
const LARGE: Duration = Duration::from_secs(180);

/// How long the page of a click may take to tell the server of it.
const HIT_WITHIN: Duration = Duration::from_secs(2);

const FORM: &str = "/form";

/// Navigate, snapshot, fill five fields, click until the effect is seen, and a login over three pages.
pub(crate) fn rounds(arena: &mut Arena<'_>, rounds: usize) -> Result<()> {
    let (form, login) = (arena.start.site.url(FORM), arena.start.site.url("/login"));
    for round in 0..rounds {
        let texts: Vec<String> = ["a", "b", "c", "d", "e"].map(|letter| format!("{letter}{round}")).to_vec();
        let fields =
            texts.iter().enumerate().map(|(index, text)| (format!("Field {}", index + 1), text.clone()));
        let fields: Vec<(String, String)> = fields.collect();
        let saved = format!("Saved {}", texts.join(" "));
        step(arena, round, Job::Navigate, &|side| side.navigate(&form, "Form"))?;
        step(arena, round, Job::Snapshot, &|side| side.snapshot().map(drop))?;
        step(arena, round, Job::Fill, &|side| side.fill(&fields))?;
        step(arena, round, Job::Click, &|side| side.click("Save", Some(&saved)))?;
        step(arena, round, Job::Login, &|side| sign_in(side, &login, round))?;
    }
    Ok(())
}

fn step(
    arena: &mut Arena<'_>,
    round: usize,
    job: Job,
    work: &dyn Fn(&mut dyn Contestant) -> Result<()>,
) -> Result<()> {
    for side in arena.order(round) {
        arena.turn(side, job, SMALL, |contestant| work(contestant))?;
        arena.rest();
    }
    Ok(())
}

fn sign_in(side: &mut dyn Contestant, url: &str, round: usize) -> Result<()> {
    let field = |name: &str, text: &str| [(name.to_owned(), text.to_owned())];
    let user = format!("ada{round}");
    side.navigate(url, "Sign in")?;
    side.snapshot()?;
    side.fill(&field("User name", &user))?;
    side.click("Next", Some("Secret"))?;
    side.snapshot()?;
    side.fill(&field("Secret", "correct horse"))?;
    side.click("Sign in", Some(&format!("Hello {user}, 13 letters")))
}

/// What each side takes up before and after so many times of opening the form and reading it.
pub(crate) fn memory(arena: &mut Arena<'_>, jobs: usize) -> Result<()> {
    let form = arena.start.site.url(FORM);
    remember(arena, Moment::Before);
    for job in 0..jobs {
        for side in arena.order(job) {
            arena.turn(side, Job::Again, SMALL, |side| {
                side.navigate(&form, "Form")?;
                side.snapshot().map(drop)
            })?;
        }
        if (job + 1).is_multiple_of(100) {
            eprintln!("  {} of {jobs}", job + 1);
        }
    }
    remember(arena, Moment::After);
    Ok(())
}

fn remember(arena: &mut Arena<'_>, moment: Moment) {
    for side in arena.order(0) {
        if let Some(memory) = arena.memory(side) {
            arena.results.memory.insert((moment, side), memory);
        }
    }
}

/// Opens the shop and reads it twice, with so many rows.
pub(crate) fn sizes(arena: &mut Arena<'_>, rows: usize, rounds: usize) -> Result<()> {
    let url = arena.start.site.url(&format!("/shop/{rows}"));
    for round in 0..rounds {
        for side in arena.order(round) {
            if arena.turn(side, Job::Load(rows), LARGE, |side| side.navigate(&url, "Shop"))?.is_none() {
                continue;
            }
            arena.rest();
            if arena.turn(side, Job::First(rows), LARGE, |side| side.snapshot())?.is_none() {
                continue;
            }
            arena.rest();
            let Some(answer) = arena.turn(side, Job::Warm(rows), LARGE, |side| side.snapshot())? else {
                continue;
            };
            if round == 0 && side != Side::Floor {
                keep(arena, side, rows, &answer, "as it comes");
                let smaller =
                    arena.turn(side, Job::Smaller(rows), LARGE, |side| side.other_snapshot().transpose())?;
                if let Some((answer, how)) = smaller.flatten() {
                    keep(arena, side, rows, &answer, how);
                }
            }
            arena.rest();
        }
    }
    remember(arena, Moment::Large);
    Ok(())
}

fn keep(arena: &mut Arena<'_>, side: Side, rows: usize, answer: &str, how: &'static str) {
    let content = Content::of(answer, rows);
    arena.results.contents.push((rows, side, how, answer.len(), content));
}

/// Which of the controls in frames and shadow roots each side reaches.
pub(crate) fn controls(arena: &mut Arena<'_>) -> Result<()> {
    let (url, site) = (arena.start.site.url("/controls"), arena.start.site);
    let reaches = |side: &mut dyn Contestant, index: usize| -> Result<()> {
        let before = site.hits(index);
        side.snapshot()?;
        side.click(&format!("Control {index}"), None)?;
        let begun = Instant::now();
        while site.hits(index) == before {
            ensure!(begun.elapsed() < HIT_WITHIN, "the click did not arrive");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    };
    for side in arena.order(0) {
        // The floor knows elements of the page by their ids, and nothing of frames.
        if side == Side::Floor {
            continue;
        }
        let reached = arena.turn(side, Job::Controls, SMALL, |contestant| {
            contestant.navigate(&url, "Controls")?;
            // Missing one is a result, not a failure of the side.
            let reached = (0..CONTROLS.len()).map(|index| {
                let outcome = reaches(contestant, index).or_else(|_| reaches(contestant, index));
                outcome
                    .map_err(|error| eprintln!("  {}: {}: {error:#}", side.name(), CONTROLS[index]))
                    .is_ok()
            });
            Ok(reached.collect::<Vec<bool>>())
        })?;
        if let Some(reached) = reached {
            arena.results.controls.insert(side, reached);
        }
    }
    Ok(())
}

/// From nothing to the first snapshot; and for a server that runs, from the create to it.
pub(crate) fn cold(arena: &mut Arena<'_>, rounds: usize) -> Result<()> {
    let form = arena.start.site.url(FORM);
    for round in 0..rounds {
        for side in arena.order(round) {
            arena.cold(side, &form, "Form", SMALL)?;
            arena.rest();
            if side == Side::Ours {
                let created = arena
                    .turn(side, Job::CreateAll, SMALL, |side| side.create_and_read(&form).transpose())?;
                if let Some(ms) = created.flatten() {
                    // Its CPU is that of the whole turn, in which the Space is closed too.
                    arena.results.add(Job::Create, side, Sample { ms, cpu: Cpu::default() });
                }
                arena.rest();
            }
        }
    }
    Ok(())
}
