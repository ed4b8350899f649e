//! Every state there is: all commands, effects, crashes and late answers, in every order, to a fixed depth.
//!
//! Two tasks, two request ids, two meanings of each, two starts of the runtime. After each step a monitor, which
//! knows the promises and none of the rules, looks at the events, the calls and the answers. That it would notice is
//! shown by breaking one rule at a time (`mutants`).

mod monitor;
mod mutants;
mod reservation;
mod world;

use std::collections::{HashSet, VecDeque};

use self::{
    monitor::Broken,
    world::{Rules, World},
};

/// How far a walk went, and what it found.
#[derive(Debug)]
struct Walk {
    worlds: usize,
    steps: usize,
    depth: usize,
    /// The first promise that was broken, and the way there.
    broken: Option<(Broken, Vec<String>)>,
}

/// Breadth first from a fresh Space; worlds that no rule can tell apart are visited once.
fn walk(rules: Rules, depth_max: usize) -> Walk {
    let start = World::new();
    let mut seen = HashSet::from([start.key()]);
    let mut trail: Vec<(usize, String)> = vec![(0, "start".to_owned())];
    let mut next = VecDeque::from([(start, 0usize, 0usize)]);
    let mut walk = Walk { worlds: 1, steps: 0, depth: 0, broken: None };
    while let Some((world, here, depth)) = next.pop_front() {
        walk.depth = walk.depth.max(depth);
        if let Err(broken) = world.settles(rules) {
            walk.broken = Some((broken, way_to(&trail, here, "…and then nothing but progress")));
            return walk;
        }
        if depth == depth_max {
            continue;
        }
        for action in world.actions(rules) {
            walk.steps += 1;
            let mut after = world.clone();
            if let Err(broken) = after.take(&action, rules) {
                walk.broken = Some((broken, way_to(&trail, here, &format!("{action:?}"))));
                return walk;
            }
            if seen.insert(after.key()) {
                trail.push((here, format!("{action:?}")));
                next.push_back((after, trail.len() - 1, depth + 1));
                walk.worlds += 1;
            }
        }
    }
    walk
}

fn way_to(trail: &[(usize, String)], mut here: usize, last: &str) -> Vec<String> {
    let mut way = vec![last.to_owned()];
    while here != 0 {
        way.push(trail[here].1.clone());
        here = trail[here].0;
    }
    way.reverse();
    way
}

/// More in a nightly run; at 20 there is nothing left to visit.
fn depth() -> usize {
    std::env::var("BROWSERSPACE_EXPLORE_DEPTH").ok().and_then(|text| text.parse().ok()).unwrap_or(10)
}

#[test]
fn no_order_of_commands_crashes_and_late_answers_breaks_a_promise() {
    let walk = walk(Rules::REAL, depth());
    eprintln!("{} worlds, {} steps, depth {}", walk.worlds, walk.steps, walk.depth);
    assert_eq!(walk.broken, None);
    assert!(walk.depth >= 10, "a shallower walk proves little: {walk:?}");
    assert!(walk.worlds > 1_000, "{walk:?}");
}
