//! Our own reading of a page: roles, names and states from a capture of its DOM.
//!
//! ```text
//! capture (flat tree, boxes, values) ─┐
//! facts (focus, modal, validity …) ───┴─► page ─► role · name · state ─► nodes
//! ```
//!
//! The accessibility tree says the same and costs about ten times as much. It stays the oracle: a test reads every page
//! of the zoo (`tests/pages`) with both and finds the same lines. Pages with what a capture does not hold, the insides
//! of fields that the browser draws itself, are read from the tree.

mod capture;
mod facts;
mod name;
mod page;
mod role;
mod state;

use std::borrow::Cow;

use url::Url;

use self::capture::Kind;
pub(crate) use self::capture::{Capture, Dom, STYLES};
pub(crate) use self::facts::Facts;
use self::page::Page;
use super::node::{Node, States};

/// The place of the document itself.
const ROOT: usize = 0;

/// How a document is read.
pub(crate) struct Reading<'a> {
    pub(crate) facts: &'a Facts,
    /// Whether addresses of links are wanted.
    pub(crate) urls: bool,
    /// Whether the browser speaks English, as the words do that it puts on fields without a name.
    pub(crate) is_english: bool,
}

/// The nodes of a document, and those of its fields that hide what they hold.
pub(crate) struct Read<'a> {
    pub(crate) nodes: Vec<Node<'a>>,
    pub(crate) secrets: Vec<i64>,
}

/// Reads a document; `None` if it has what a capture does not tell.
pub(crate) fn read<'a>(
    dom: &Dom<'a>,
    reading: &Reading<'_>,
    is_secret: impl Fn(i64) -> bool,
) -> Option<Read<'a>> {
    let page = Page::new(dom, reading.facts, is_secret);
    let mut reader = Reader {
        base: Url::parse(dom.base_url()).ok().filter(|_| reading.urls),
        nodes: (0..dom.len()).map(|_| Node::default()).collect(),
        page: &page,
        is_english: reading.is_english,
    };
    reader.run()?;
    let nodes = reader.nodes;
    let secrets = page.secrets().filter(|field| !dom.value(*field).is_empty());
    let secrets = secrets.filter_map(|field| dom.backend_node_id(field)).collect();
    Some(Read { nodes, secrets })
}

/// Nodes in closed shadow roots, one of each, whose facts are to be asked for.
pub(crate) fn closed_roots(dom: &Dom<'_>) -> Vec<i64> {
    let starts = |place: &usize| {
        let parent = dom.parent(*place);
        dom.kinds[*place] == Kind::Element
            && dom.shadow(*place) == Some("closed")
            && parent.is_some_and(|parent| dom.tag(parent) != "SLOT")
            && parent.and_then(|parent| dom.children(parent).iter().find(|c| dom.kinds[**c] == Kind::Element))
                == Some(place)
            && parent
                .is_some_and(|parent| dom.shadow(parent) != Some("closed") || dom.tag(parent).contains('-'))
    };
    (1..dom.len()).filter(starts).filter_map(|place| dom.backend_node_id(place)).collect()
}

struct Reader<'p, 'a> {
    page: &'p Page<'p>,
    nodes: Vec<Node<'a>>,
    base: Option<Url>,
    is_english: bool,
}

impl<'a> Reader<'_, 'a> {
    fn run(&mut self) -> Option<()> {
        let dom = self.page.dom;
        let role = Cow::Borrowed("RootWebArea");
        let backend_node_id = dom.backend_node_id(ROOT);
        let top = self.top();
        self.nodes[ROOT] = Node { role, backend_node_id, children: top.clone(), ..Node::default() };
        let mut waiting = top;
        while let Some(place) = waiting.pop() {
            self.visit(place)?;
            waiting.extend(&self.nodes[place].children);
        }
        Some(())
    }

    /// What of the document can be reached: a modal dialog leaves nothing else.
    fn top(&self) -> Vec<usize> {
        let page = self.page;
        let modal = (0..page.dom.len()).rev().find(|place| page.fact(&page.facts.modal, *place));
        modal.map_or_else(|| self.inner(ROOT), |dialog| vec![dialog])
    }

    /// The nodes inside that say something.
    fn inner(&self, place: usize) -> Vec<usize> {
        let mut inner = self.page.content(place);
        inner.retain(|child| self.is_told(*child));
        inner
    }

    fn is_told(&self, place: usize) -> bool {
        let (page, dom) = (self.page, self.page.dom);
        match dom.kinds[place] {
            Kind::Text => {
                let is_unboxed = dom.parent(place).is_some_and(|parent| self.is_unboxed(parent));
                page.text(place).is_some() || is_unboxed
            }
            Kind::Before | Kind::After => page.text(place).is_some(),
            Kind::Element if matches!(dom.tag(place), "RT" | "RP") => false,
            Kind::Element => (dom.is_rendered(place) || self.is_unboxed(place)) && !page.is_cut(place),
            _ => false,
        }
    }

    /// Whether it is reachable though nothing of it is drawn: in a canvas, in a closed list, on a map.
    fn is_unboxed(&self, place: usize) -> bool {
        let dom = self.page.dom;
        dom.tag(place) == "AREA"
            || self.page.around(place).take_while(|at| !dom.has_box(*at) || *at == place).any(|at| {
                let parent = dom.parent(at).map_or("", |parent| dom.tag(parent));
                matches!(parent, "SELECT" | "CANVAS")
            })
    }

    fn visit(&mut self, place: usize) -> Option<()> {
        let (page, dom) = (self.page, self.page.dom);
        let backend_node_id = dom.backend_node_id(place);
        if dom.kinds[place] != Kind::Element {
            let text = page.text(place).unwrap_or_else(|| dom.source_text(place).to_owned());
            let role = Cow::Borrowed("StaticText");
            self.nodes[place] = Node { role, name: text.into(), backend_node_id, ..Node::default() };
            return Some(());
        }
        // The insides of these are the browser's own.
        let is_beyond = (matches!(dom.tag(place), "AUDIO" | "VIDEO") && dom.has(place, "controls"))
            || (dom.tag(place) == "DETAILS"
                && !dom.children(place).iter().any(|child| dom.tag(*child) == "SUMMARY"))
            || (!self.is_english && page.is_named_by_browser(place));
        if is_beyond {
            return None;
        }
        let role = if dom.has_box(place) && dom.is_invisible(place) { "" } else { page.role(place) };
        let children = self.children(place, role);
        let is_dull = matches!(role, "" | "none");
        let name = if is_dull { String::new() } else { page.name(place, role) };
        let value = if is_dull { String::new() } else { page.told_value(place, role) };
        self.nodes[place] = Node {
            ignored: role == "none",
            states: if is_dull { States::default() } else { page.states(place, role) },
            name: name.into(),
            value: value.into(),
            level: (role == "heading").then(|| level(dom, place).into()),
            url: self.url(place, role).into(),
            role: Cow::Owned(role.to_owned()),
            children,
            backend_node_id,
        };
        Some(())
    }

    fn children(&self, place: usize, role: &str) -> Vec<usize> {
        let dom = self.page.dom;
        match dom.tag(place) {
            "INPUT" | "TEXTAREA" | "METER" | "PROGRESS" | "IFRAME" | "FRAME" | "EMBED" => Vec::new(),
            "OPTION" => Vec::new(),
            "OBJECT" if role == "PluginObject" => Vec::new(),
            "IMG" => self.areas(place),
            _ => self.inner(place),
        }
    }

    /// The links of the map that an image uses.
    fn areas(&self, image: usize) -> Vec<usize> {
        let dom = self.page.dom;
        let Some(name) = dom.attribute(image, "usemap").and_then(|map| map.strip_prefix('#')) else {
            return Vec::new();
        };
        let map = (1..dom.len()).find(|at| dom.tag(*at) == "MAP" && dom.attribute(*at, "name") == Some(name));
        let areas = map.into_iter().flat_map(|map| self.page.inside(map));
        areas.filter(|area| dom.tag(*area) == "AREA" && dom.has(*area, "href")).collect()
    }

    fn url(&self, place: usize, role: &str) -> String {
        let dom = self.page.dom;
        let address = dom.attribute(place, "href").or_else(|| dom.attribute(place, "xlink:href"));
        let url =
            address.filter(|_| role == "link").and_then(|address| self.base.as_ref()?.join(address).ok());
        url.map(String::from).unwrap_or_default()
    }
}

fn level(dom: &Dom<'_>, place: usize) -> String {
    let said =
        dom.attribute(place, "aria-level").filter(|level| level.parse::<u32>().is_ok_and(|level| level > 0));
    let own = dom.tag(place).strip_prefix('H').filter(|level| level.len() == 1);
    said.or(own).unwrap_or("2").to_owned()
}
