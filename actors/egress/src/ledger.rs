//! What was refused or failed: why, for who asks; and how often, for the record, bounded whatever a page does.
//!
//! The first refusal of a host by a rule is told at once; those that follow in its window are counted and told together
//! when the window ends. Beyond so many hosts in a window only numbers are kept.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use crate::{host::Host, policy::Rule};

/// How long refusals of the same kind are counted before they are told.
pub(crate) const WINDOW: Duration = Duration::from_secs(30);
/// So many hosts are told by name in a window.
const NAMED_MAX: usize = 24;
/// So many reasons are remembered for who asks.
const REASONS_MAX: usize = 512;

/// Why something was not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// A rule forbids it.
    Blocked(Rule),
    /// It failed, as Chromium would say: `net::ERR_CONNECTION_REFUSED`.
    Failed(&'static str),
}

/// Refusals of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The host as it was meant; none: several that are not told by name, or one that can't be understood.
    pub host: Option<Host>,
    /// The port; 0 where there is no host.
    pub port: u16,
    /// By which rule.
    pub rule: Rule,
    /// `CONNECT` for a tunnel (https and WebSocket), else the method of the first of them.
    pub method: String,
    /// How many.
    pub count: u32,
}

type Key = (Option<Host>, u16, Rule);

struct Open {
    since: Instant,
    untold: u32,
    method: String,
}

/// See the top of this file.
#[derive(Default)]
pub(crate) struct Ledger {
    open: HashMap<Key, Open>,
    reasons: HashMap<(Host, u16), (Why, Instant)>,
}

impl Ledger {
    /// Takes note of a refusal; gives what is to be told now.
    pub(crate) fn refuse(
        &mut self,
        host: Option<&Host>,
        port: u16,
        rule: Rule,
        method: &str,
        now: Instant,
    ) -> Option<Report> {
        let named = (host.cloned(), port, rule);
        let key = if self.open.contains_key(&named) || self.open.len() < NAMED_MAX {
            named
        } else {
            (None, 0, rule)
        };
        if let Some(open) = self.open.get_mut(&key) {
            open.untold = open.untold.saturating_add(1);
            return None;
        }
        self.open.insert(key.clone(), Open { since: now, untold: 0, method: method.to_owned() });
        let (host, port, rule) = key;
        Some(Report { host, port, rule, method: method.to_owned(), count: 1 })
    }

    /// What the windows that are over by now have counted.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Report> {
        let over = |open: &Open| now.saturating_duration_since(open.since) >= WINDOW;
        let ended = self.open.extract_if(|_, open| over(open));
        let counted = ended.filter(|(_, open)| open.untold > 0);
        counted
            .map(|((host, port, rule), open)| Report {
                host,
                port,
                rule,
                method: open.method,
                count: open.untold,
            })
            .collect()
    }

    /// Remembers why a host was not reached.
    pub(crate) fn remember(&mut self, host: &Host, port: u16, why: Why, now: Instant) {
        if self.reasons.len() >= REASONS_MAX {
            let oldest = self.reasons.iter().min_by_key(|(_, (_, at))| *at).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.reasons.remove(&key));
        }
        self.reasons.insert((host.clone(), port), (why, now));
    }

    /// Forgets why a host was not reached: it was.
    pub(crate) fn forget(&mut self, host: &Host, port: u16) {
        if !self.reasons.is_empty() {
            self.reasons.remove(&(host.clone(), port));
        }
    }

    /// Why a host was not reached since then.
    pub(crate) fn why(&self, host: &Host, port: u16, since: Instant) -> Option<Why> {
        let (why, at) = self.reasons.get(&(host.clone(), port))?;
        (*at >= since).then_some(*why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).expect("a host")
    }

    #[test]
    fn c08_the_first_refusal_is_told_at_once_and_the_rest_as_a_number() {
        let (mut ledger, begin) = (Ledger::default(), Instant::now());
        let refuse = |ledger: &mut Ledger, port| {
            ledger.refuse(Some(&host("10.0.0.1")), port, Rule::Private, "GET", begin)
        };
        let told = refuse(&mut ledger, 80).expect("the first");
        assert_eq!((told.count, told.port, told.method.as_str()), (1, 80, "GET"));
        assert!((0..1000).all(|_| refuse(&mut ledger, 80).is_none()));
        assert!(refuse(&mut ledger, 81).is_some(), "another port is another matter");
        assert_eq!(ledger.due(begin), []);
        let due = ledger.due(begin + WINDOW);
        assert_eq!(due.iter().map(|report| (report.port, report.count)).collect::<Vec<_>>(), [(80, 1000)]);
        assert!(refuse(&mut ledger, 80).is_some(), "a new window");
    }

    #[test]
    fn c08_a_page_that_tries_a_thousand_hosts_makes_a_bounded_record_and_the_rule_is_told() {
        let (mut ledger, begin) = (Ledger::default(), Instant::now());
        let told = (0..1000u32).filter_map(|number| {
            let address = Host::Address(std::net::Ipv4Addr::from(0x0a00_0000 + number).into());
            ledger.refuse(Some(&address), 80, Rule::Private, "GET", begin)
        });
        let told: Vec<Report> = told.collect();
        assert_eq!(told.len(), NAMED_MAX + 1);
        assert_eq!(told.last().map(|report| (report.host.clone(), report.rule)), Some((None, Rule::Private)));
        let rest: u32 = ledger.due(begin + WINDOW).iter().map(|report| report.count).sum();
        assert_eq!(rest as usize, 1000 - told.len());
    }

    #[test]
    fn a_reason_is_told_for_what_came_after_the_question_and_only_so_many_are_kept() {
        let (mut ledger, begin) = (Ledger::default(), Instant::now());
        ledger.remember(&host("a.example"), 80, Why::Blocked(Rule::Denied), begin);
        assert_eq!(ledger.why(&host("a.example"), 80, begin), Some(Why::Blocked(Rule::Denied)));
        assert_eq!(ledger.why(&host("a.example"), 80, begin + Duration::from_millis(1)), None);
        for number in 0..u16::MAX {
            let at = begin + Duration::from_millis(u64::from(number) + 1);
            ledger.remember(&host("b.example"), number, Why::Failed("x"), at);
        }
        assert_eq!(ledger.reasons.len(), REASONS_MAX);
        assert_eq!(ledger.why(&host("a.example"), 80, begin), None, "the oldest goes first");
    }
}
