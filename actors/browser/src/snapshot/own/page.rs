//! One document, ready to be asked: what refers to what, and what is left out.

use std::collections::{HashMap, HashSet};

use super::capture::{Dom, Kind};
use super::facts::Facts;

/// A captured document with its references resolved.
pub(crate) struct Page<'a> {
    pub(crate) dom: &'a Dom<'a>,
    pub(crate) facts: &'a Facts,
    /// Elements by their `id`.
    ids: HashMap<&'a str, Vec<usize>>,
    /// The labels of a field, in their order.
    labels: HashMap<usize, Vec<usize>>,
    /// The host of the shadow tree that a node is in; the document is 0.
    scopes: Vec<usize>,
    /// Nodes that another one owns by `aria-owns`, and by whom.
    owners: HashMap<usize, usize>,
    owned: HashMap<usize, Vec<usize>>,
    /// Fields whose value may not be told.
    secrets: HashSet<usize>,
    /// Tables of data: found once, for each of their cells asks.
    data_tables: HashSet<usize>,
    /// Whether any first letter stands apart: looking for it takes a walk over all siblings.
    has_first_letters: bool,
}

impl<'a> Page<'a> {
    pub(crate) fn new(dom: &'a Dom<'a>, facts: &'a Facts, is_secret: impl Fn(i64) -> bool) -> Self {
        let mut page = Self {
            dom,
            facts,
            ids: HashMap::new(),
            labels: HashMap::new(),
            scopes: vec![0; dom.len()],
            owners: HashMap::new(),
            owned: HashMap::new(),
            secrets: HashSet::new(),
            data_tables: HashSet::new(),
            has_first_letters: dom.kinds.contains(&Kind::FirstLetter),
        };
        for place in 1..dom.len() {
            page.scopes[place] = page.scope(place);
            if let Some(id) = dom.attribute(place, "id").filter(|id| !id.is_empty()) {
                page.ids.entry(id).or_default().push(place);
            }
            let may_hold = matches!(dom.tag(place), "INPUT" | "TEXTAREA");
            if may_hold && (hides(dom, place) || dom.backend_node_id(place).is_some_and(&is_secret)) {
                page.secrets.insert(place);
            }
        }
        for place in 1..dom.len() {
            if dom.tag(place) == "LABEL" {
                page.label(place);
            } else if dom.has(place, "aria-owns") {
                page.own(place);
            }
        }
        let tables = (1..dom.len()).filter(|place| dom.tag(*place) == "TABLE" && page.tells_data(*place));
        page.data_tables = tables.collect();
        page
    }

    pub(crate) fn is_data(&self, table: usize) -> bool {
        self.data_tables.contains(&table)
    }

    /// In whose shadow tree a node is.
    ///
    /// A capture says of a node only whether it is in one. What stands in a slot belongs to the tree around, unless it
    /// is what the slot shows while it is given nothing; where both trees are of one kind that can not be told.
    fn scope(&self, place: usize) -> usize {
        let Some(parent) = self.dom.parent(place) else { return 0 };
        let around = self.scopes[parent];
        match (self.dom.shadow(parent), self.dom.shadow(place)) {
            (_, None) => 0,
            (None, Some(_)) => parent,
            (Some(outer), Some(inner)) if self.dom.tag(parent) == "SLOT" && outer != inner => {
                self.scopes[around]
            }
            (Some(_), Some(_)) if self.dom.tag(parent).contains('-') => parent,
            _ => around,
        }
    }

    /// The element that an id means for `place`.
    pub(crate) fn by_id(&self, id: &str, place: usize) -> Option<usize> {
        let all = self.ids.get(id)?;
        let own = all.iter().find(|other| self.scopes[**other] == self.scopes[place]);
        let alike = || {
            let mut alike = all.iter().filter(|other| self.dom.shadow(**other) == self.dom.shadow(place));
            alike.next().filter(|_| alike.next().is_none())
        };
        own.or_else(alike).copied()
    }

    /// The elements that an attribute lists by their ids.
    pub(crate) fn listed(&self, place: usize, attribute: &str) -> Vec<usize> {
        let ids = self.dom.attribute(place, attribute).unwrap_or("").split_whitespace();
        ids.filter_map(|id| self.by_id(id, place)).collect()
    }

    fn label(&mut self, label: usize) {
        let field = match self.dom.attribute(label, "for") {
            Some(id) => self.by_id(id, label).filter(|field| is_labelable(self.dom, *field)),
            None => self.inside(label).find(|inner| is_labelable(self.dom, *inner)),
        };
        if let Some(field) = field {
            self.labels.entry(field).or_default().push(label);
        }
    }

    pub(crate) fn labels(&self, field: usize) -> &[usize] {
        self.labels.get(&field).map_or(&[], Vec::as_slice)
    }

    /// All nodes inside, in their order.
    pub(crate) fn inside(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let mut waiting: Vec<usize> = self.dom.children(place).iter().rev().copied().collect();
        std::iter::from_fn(move || {
            let next = waiting.pop()?;
            waiting.extend(self.dom.children(next).iter().rev());
            Some(next)
        })
    }

    /// The node and all around it, from the inside out.
    pub(crate) fn around(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(place), |at| self.dom.parent(*at))
    }

    fn own(&mut self, owner: usize) {
        for owned in self.listed(owner, "aria-owns") {
            let is_around = self.around(owner).any(|at| at == owned);
            if is_around || self.owners.contains_key(&owned) {
                continue;
            }
            self.owners.insert(owned, owner);
            self.owned.entry(owner).or_default().push(owned);
        }
    }

    pub(crate) fn is_owned(&self, place: usize) -> bool {
        self.owners.contains_key(&place)
    }

    /// What is in a node, as it is shown: generated text around its own children, then what it owns.
    pub(crate) fn content(&self, place: usize) -> Vec<usize> {
        let dom = self.dom;
        let children = dom.children(place);
        let of = |kind| children.iter().copied().filter(move |child| dom.kinds[*child] == kind);
        let own = children.iter().copied().filter(|child| {
            matches!(dom.kinds[*child], Kind::Element | Kind::Text | Kind::FirstLetter)
                && !self.owners.contains_key(child)
        });
        let (mut head, mut rest): (Vec<usize>, Vec<usize>) = (of(Kind::Before).collect(), own.collect());
        // A summary is shown first, wherever it stands.
        if dom.tag(place) == "DETAILS"
            && let Some(at) = rest.iter().position(|child| dom.tag(*child) == "SUMMARY")
        {
            let summary = rest.remove(at);
            rest.insert(0, summary);
        }
        head.extend(rest);
        head.extend(of(Kind::After));
        head.extend(self.owned.get(&place).into_iter().flatten());
        head
    }

    /// What a text shows; the first letter may stand apart from the rest. `None` if it is not shown.
    pub(crate) fn text(&self, place: usize) -> Option<String> {
        if self.dom.is_invisible(place) {
            return None;
        }
        let shown = self.dom.shown_text(place)?;
        let first = self.dom.parent(place).filter(|_| self.has_first_letters).and_then(|parent| {
            let siblings = self.dom.children(parent);
            let letter = siblings.iter().find(|child| self.dom.kinds[**child] == Kind::FirstLetter)?;
            let text = siblings.iter().find(|child| {
                self.dom.kinds[**child] == Kind::Text && !self.dom.source_text(**child).trim().is_empty()
            });
            (text == Some(&place)).then(|| self.dom.shown_text(*letter)).flatten()
        });
        Some(format!("{}{shown}", first.unwrap_or("")))
    }

    /// Whether nothing in this element can be reached: it says so itself.
    pub(crate) fn is_cut(&self, place: usize) -> bool {
        self.dom.attribute(place, "aria-hidden") == Some("true") || self.dom.has(place, "inert")
    }

    /// Whether the field's value may not be told.
    pub(crate) fn is_secret(&self, place: usize) -> bool {
        self.secrets.contains(&place)
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = usize> + '_ {
        self.secrets.iter().copied()
    }

    pub(crate) fn fact(&self, set: &HashSet<i64>, place: usize) -> bool {
        self.dom.backend_node_id(place).is_some_and(|node| set.contains(&node))
    }
}

fn hides(dom: &Dom<'_>, place: usize) -> bool {
    let attributes: Vec<String> =
        dom.attributes(place).flat_map(|(name, value)| [name.to_owned(), value.to_owned()]).collect();
    crate::snapshot::hides_value(&attributes)
}

/// HTML, 4.10.2: what a label can be for.
fn is_labelable(dom: &Dom<'_>, place: usize) -> bool {
    match dom.tag(place) {
        "BUTTON" | "METER" | "OUTPUT" | "PROGRESS" | "SELECT" | "TEXTAREA" => true,
        "INPUT" => !dom.attribute(place, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("hidden")),
        _ => false,
    }
}
