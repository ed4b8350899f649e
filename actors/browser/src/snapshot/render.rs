//! From trees to lines: what is worth a line, what merges into another, and what gets a ref.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use super::ax;
use super::key;
use super::node::{Node, Tree, Tri, is_field};
use super::own::{self, Capture, Facts, Reading};
use super::text::{quote, squeeze};
use crate::action::args::SnapshotArgs;
use crate::frame::PageFrame;
use crate::reference::NodeKey;
use crate::state::Hub;

/// Characters of a name or value on a line.
const NAME_CHARS_MAX: usize = 200;

/// Characters of a piece of plain text on a line; `get_content` reads the whole.
const TEXT_CHARS_MAX: usize = 1000;

/// Where the tree of a frame belongs.
#[derive(Debug)]
pub(crate) enum Join {
    /// It is the page itself.
    Top,
    /// Below this node of that frame.
    At { frame: Arc<str>, node: i64 },
    /// The frame is not shown anywhere.
    Lost,
}

/// What a frame is read from.
#[derive(Debug)]
pub(crate) enum Content {
    /// Its accessibility tree.
    Tree(Bytes),
    /// The capture of its session.
    Captured(Arc<Captured>),
}

/// A capture, not yet decoded, and what it does not tell.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    pub(crate) bytes: Bytes,
    pub(crate) facts: Facts,
}

/// One frame; without content if it could not be read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) frame: PageFrame,
    pub(crate) content: Option<Content>,
    pub(crate) join: Join,
}

/// Everything that lines are made from.
#[derive(Debug)]
pub(crate) struct Render {
    pub(crate) hub: Hub,
    pub(crate) options: SnapshotArgs,
    pub(crate) root: Option<NodeKey>,
    pub(crate) missing: bool,
    pub(crate) is_english: bool,
    pub(crate) secrets: HashSet<NodeKey>,
    pub(crate) sources: Vec<Source>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Rendered {
    Lines(Vec<String>),
    /// The root that was asked for is not in the page.
    NoRoot,
    /// A frame of this session has what only its accessibility tree tells.
    Beyond(Arc<str>),
}

/// A node whose turn has not come, and what its ancestors said.
#[derive(Clone)]
struct Waiting {
    tree: usize,
    node: usize,
    depth: usize,
    /// The name of the nearest line above, to drop text that only repeats it.
    above: Option<Rc<str>>,
    inside: Inside,
}

/// What the nearest telling ancestor means for what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Page,
    /// The name stands for all text inside, as for a button.
    Named,
    /// The list of a select: its options are chosen, not clicked.
    Select,
}

#[derive(Default)]
struct Lines {
    lines: Vec<String>,
    /// The depth of the last line, if it is a container that can still take a text.
    open: Option<usize>,
}

impl Render {
    /// The lines of the page.
    pub(crate) fn lines(&self) -> serde_json::Result<Rendered> {
        let captures = self.decode()?;
        let mut secrets = self.secrets.clone();
        let mut trees = Vec::new();
        let mut joins: HashMap<(&str, i64), Option<usize>> = HashMap::new();
        let mut top = None;
        for source in &self.sources {
            let tree = match &source.content {
                None => None,
                Some(Content::Tree(bytes)) => {
                    let mut tree = ax::decode(&source.frame, bytes)?;
                    tree.mask(|node| secrets.contains(&key(&source.frame, node)));
                    Some(tree)
                }
                Some(Content::Captured(captured)) => {
                    let capture = captures.get(&source.frame.session);
                    let Some(dom) = capture.and_then(|capture| capture.dom(&source.frame.id)) else {
                        continue;
                    };
                    let Some(read) = self.read(&source.frame, &dom, captured) else {
                        return Ok(Rendered::Beyond(source.frame.session.clone()));
                    };
                    secrets.extend(read.secrets.iter().map(|node| key(&source.frame, *node)));
                    Some(Tree { frame: &source.frame, nodes: read.nodes })
                }
            };
            let index = tree.map(|tree| {
                trees.push(tree);
                trees.len() - 1
            });
            match &source.join {
                Join::Top => top = index,
                Join::At { frame, node } => {
                    joins.insert((frame, *node), index);
                }
                Join::Lost => {}
            }
        }
        // Once seen to hide its value, a field stays hidden.
        self.hub.state().secret_fields.extend(secrets.iter().cloned());
        let Some((tree, node)) = self.start(&trees, top) else {
            let is_empty = self.root.is_none();
            return Ok(if is_empty { Rendered::Lines(Vec::new()) } else { Rendered::NoRoot });
        };
        let mut walk =
            Walk { render: self, trees: &trees, secrets: &secrets, joins, lines: Lines::default() };
        walk.run(tree, node);
        if self.missing {
            walk.lines.push(0, "(a frame of this page could not be read)", false);
        }
        Ok(Rendered::Lines(walk.lines.lines))
    }

    /// The captures by their sessions.
    fn decode(&self) -> serde_json::Result<HashMap<Arc<str>, Capture<'_>>> {
        let mut captures = HashMap::new();
        for source in &self.sources {
            let Some(Content::Captured(captured)) = &source.content else { continue };
            if !captures.contains_key(&source.frame.session) {
                captures.insert(source.frame.session.clone(), serde_json::from_slice(&captured.bytes)?);
            }
        }
        Ok(captures)
    }

    fn read<'a>(&self, frame: &PageFrame, dom: &own::Dom<'a>, captured: &Captured) -> Option<own::Read<'a>> {
        let reading =
            Reading { facts: &captured.facts, urls: self.options.urls, is_english: self.is_english };
        let known: HashSet<i64> = {
            let state = self.hub.state();
            let of_frame = state.secret_fields.iter().filter(|field| {
                field.session == frame.session && field.frame == frame.id && field.loader == frame.loader
            });
            of_frame.map(|field| field.node).collect()
        };
        own::read(dom, &reading, |node| known.contains(&node))
    }

    fn start(&self, trees: &[Tree<'_>], top: Option<usize>) -> Option<(usize, usize)> {
        let Some(root) = &self.root else {
            return top.filter(|top| !trees[*top].nodes.is_empty()).map(|top| (top, 0));
        };
        trees.iter().enumerate().find_map(|(index, tree)| {
            let is_frame = tree.frame.session == root.session
                && tree.frame.id == root.frame
                && tree.frame.loader == root.loader;
            is_frame.then(|| tree.find(root.node)).flatten().map(|node| (index, node))
        })
    }
}

struct Walk<'a> {
    render: &'a Render,
    trees: &'a [Tree<'a>],
    secrets: &'a HashSet<NodeKey>,
    joins: HashMap<(&'a str, i64), Option<usize>>,
    lines: Lines,
}

impl<'a> Walk<'a> {
    /// Walks without recursion: a page may nest thousands of elements.
    fn run(&mut self, tree: usize, node: usize) {
        let mut waiting = vec![Waiting { tree, node, depth: 0, above: None, inside: Inside::Page }];
        while let Some(next) = waiting.pop() {
            self.visit(&next, &mut waiting);
        }
    }

    fn visit(&mut self, at: &Waiting, waiting: &mut Vec<Waiting>) {
        let node = &self.trees[at.tree].nodes[at.node];
        let role = node.role.as_ref();
        let name = squeeze(&node.name);
        if role == "StaticText" {
            self.text(at, &name);
            return;
        }
        if self.is_passed_over(node, role, &name) {
            self.descend(&Waiting { inside: inside(role, &name, at.inside), ..at.clone() }, waiting);
            return;
        }
        if self.is_dropped(role, &name) {
            return;
        }
        let line = self.line(at, node, role, &name);
        let shown = self.is_shown(&line);
        if shown {
            let depth = if self.render.options.interactive { 0 } else { at.depth };
            let can_take_text = line.is_bare && !self.render.options.full;
            self.lines.push(depth, &line.text, can_take_text);
        }
        let depth = at.depth + usize::from(shown);
        if self.render.options.depth.is_some_and(|limit| depth > limit as usize) {
            return;
        }
        match role {
            "Iframe" | "IframePresentational" => self.enter(at, node, depth, waiting),
            // What a field holds is its value.
            _ if is_field(role) && !node.value.is_empty() && role != "combobox" => {}
            // The browser draws these itself; their value is all that there is to them.
            "Date" | "DateTime" | "InputTime" | "ColorWell" => {}
            _ => {
                // What is not on the line is not repeated by what follows.
                let is_told = !name.is_empty() && self.tells_name(role);
                let above: Option<Rc<str>> = if is_told { Some(name.into()) } else { at.above.clone() };
                let inside = inside(role, above.as_deref().unwrap_or_default(), at.inside);
                self.descend(&Waiting { depth, above, inside, ..at.clone() }, waiting);
            }
        }
    }

    fn text(&mut self, at: &Waiting, text: &str) {
        let repeats =
            at.inside == Inside::Named || at.above.as_deref().is_some_and(|above| above.contains(text));
        if text.is_empty() || self.render.options.interactive || (repeats && !self.render.options.full) {
            return;
        }
        if self.render.options.depth.is_some_and(|limit| at.depth > limit as usize) {
            return;
        }
        self.lines.text(at.depth, &quote(text, TEXT_CHARS_MAX));
    }

    /// Nodes that say nothing by themselves; their children take their place.
    fn is_passed_over(&self, node: &Node<'_>, role: &str, name: &str) -> bool {
        if node.ignored || matches!(role, "RootWebArea" | "") {
            return true;
        }
        if self.render.options.full {
            return false;
        }
        match role {
            "none" | "presentation" | "rowgroup" | "cell" | "gridcell" | "paragraph" | "LayoutTable"
            | "LayoutTableRow" | "LayoutTableCell" | "strong" | "emphasis" | "mark" | "subscript"
            | "superscript" | "LabelText" | "Legend" | "MenuListPopup" | "time" | "Abbr" | "Ruby"
            | "insertion" => true,
            "generic" | "Section" | "Pre" => name.is_empty() || !node.states.focusable,
            "list" | "listitem" | "row" | "group" | "table" | "grid" | "article" | "DescriptionList"
            | "figure"
                if self.render.options.compact =>
            {
                true
            }
            _ => false,
        }
    }

    fn is_dropped(&self, role: &str, name: &str) -> bool {
        match role {
            "InlineTextBox" | "LineBreak" | "ListMarker" => true,
            "image" | "img" | "SvgRoot" | "graphics-symbol" | "canvas" | "splitter" | "separator" => {
                name.is_empty() && !self.render.options.full && role != "canvas"
            }
            _ => false,
        }
    }

    fn is_shown(&self, line: &Line) -> bool {
        !self.render.options.interactive || line.has_ref
    }

    fn line(&self, at: &Waiting, node: &Node<'_>, role: &str, name: &str) -> Line {
        let options = &self.render.options;
        let field = node.backend_node_id.map(|id| key(self.trees[at.tree].frame, id));
        let mut text = String::new();
        let is_chosen = role == "option" && at.inside == Inside::Select;
        let is_wanted = options.full || is_acted_on(role) || (node.states.focusable && !is_chosen);
        // Locked for a moment only: the connection's reader needs the state too.
        let intern = |key| self.render.hub.state().references.intern(key);
        let reference = field.clone().filter(|_| is_wanted).map(intern);
        if let Some(reference) = reference {
            text.push_str(&format!("{reference} "));
        }
        match node.level.as_deref().filter(|_| role == "heading") {
            Some(level) => text.push_str(&format!("h{level}")),
            None => text.push_str(role_word(role)),
        }
        let named = !name.is_empty() && self.tells_name(role);
        if named {
            text.push(' ');
            text.push_str(&quote(name, NAME_CHARS_MAX));
        }
        push_states(&mut text, node, role);
        let value = &node.value;
        if !value.is_empty() {
            if field.is_some_and(|key| self.secrets.contains(&key)) {
                text.push_str(&format!(" (filled, {} hidden)", value.chars().count()));
            } else if squeeze(value) != name {
                text.push_str(&format!(" ={}", quote(value, NAME_CHARS_MAX)));
            }
        }
        if options.urls && !node.url.is_empty() && role == "link" {
            text.push_str(&format!(" url={}", quote(&node.url, NAME_CHARS_MAX * 5)));
        }
        Line {
            is_bare: !named && value.is_empty() && reference.is_none(),
            has_ref: reference.is_some(),
            text,
        }
    }

    /// The name of a row is the text of its cells, which follows.
    fn tells_name(&self, role: &str) -> bool {
        self.render.options.full || !matches!(role, "row" | "listitem")
    }

    /// Puts the children of `from` next, with what `from` says about them.
    fn descend(&self, from: &Waiting, waiting: &mut Vec<Waiting>) {
        let tree = &self.trees[from.tree];
        let children = tree.nodes[from.node].children.iter().rev();
        waiting.extend(children.map(|node| Waiting { node: *node, ..from.clone() }));
    }

    /// Goes on in the document that an iframe shows.
    fn enter(&mut self, at: &Waiting, node: &Node<'_>, depth: usize, waiting: &mut Vec<Waiting>) {
        let frame = self.trees[at.tree].frame;
        let joined = node.backend_node_id.and_then(|id| self.joins.get(&(&*frame.id, id)));
        match joined {
            Some(Some(tree)) if !self.trees[*tree].nodes.is_empty() => {
                waiting.push(Waiting { tree: *tree, node: 0, depth, above: None, inside: Inside::Page });
            }
            Some(_) => self.lines.push(depth, "(this frame could not be read)", false),
            None => self.lines.push(depth, "(this frame has not loaded or may not be read)", false),
        }
    }
}

struct Line {
    text: String,
    has_ref: bool,
    /// A container without anything of its own.
    is_bare: bool,
}

impl Lines {
    fn push(&mut self, depth: usize, text: &str, can_take_text: bool) {
        // Deep nesting must not turn into a page of blanks.
        let indent = depth.min(40);
        self.lines.push(format!("{:indent$}{text}", ""));
        self.open = can_take_text.then_some(depth);
    }

    /// A text goes onto the line of a bare container right above it.
    fn text(&mut self, depth: usize, quoted: &str) {
        match (self.open.take(), self.lines.last_mut()) {
            (Some(open), Some(line)) if open + 1 == depth => {
                line.push(' ');
                line.push_str(quoted);
            }
            _ => self.push(depth, quoted, false),
        }
    }
}

fn is_acted_on(role: &str) -> bool {
    matches!(
        role,
        "link"
            | "button"
            | "textbox"
            | "searchbox"
            | "combobox"
            | "checkbox"
            | "radio"
            | "switch"
            | "slider"
            | "spinbutton"
            | "menuitem"
            | "menuitemcheckbox"
            | "menuitemradio"
            | "tab"
            | "treeitem"
            | "listbox"
            | "DisclosureTriangle"
            | "DisclosureTriangleGrouped"
            | "Iframe"
            | "ColorWell"
            | "Date"
            | "DateTime"
            | "InputTime"
            | "toggleButton"
            | "popUpButton"
    )
}

/// What a node means for the text inside it.
fn inside(role: &str, name: &str, around: Inside) -> Inside {
    match role {
        "MenuListPopup" => Inside::Select,
        // Children of these are presentational (WAI-ARIA 1.2, section 5.2.8): the name is all there is.
        "button" | "checkbox" | "radio" | "switch" | "tab" | "option" | "menuitemcheckbox"
        | "menuitemradio" | "slider" | "progressbar" | "meter"
            if !name.is_empty() =>
        {
            Inside::Named
        }
        _ => around,
    }
}

fn role_word(role: &str) -> &str {
    match role {
        "Iframe" | "IframePresentational" => "iframe",
        "listitem" => "item",
        "columnheader" | "rowheader" => "header",
        "DisclosureTriangle" | "DisclosureTriangleGrouped" => "disclosure",
        other => other,
    }
}

fn push_states(text: &mut String, node: &Node<'_>, role: &str) {
    let states = &node.states;
    for (word, state) in [("checked", states.checked), ("pressed", states.pressed)] {
        match state {
            Some(Tri::True) => text.push_str(&format!(" {word}")),
            Some(Tri::Mixed) => text.push_str(" mixed"),
            Some(Tri::False) | None => {}
        }
    }
    match states.expanded {
        Some(true) => text.push_str(" expanded"),
        Some(false) => text.push_str(" collapsed"),
        None => {}
    }
    for (word, is_so) in [
        ("selected", states.selected),
        ("disabled", states.disabled),
        // A field that is set to be read-only says so; what cannot be typed into anyway need not.
        ("readonly", states.readonly && is_field(role)),
        ("required", states.required),
        ("modal", states.modal),
        ("busy", states.busy),
        ("focused", states.focused),
        ("invalid", states.invalid),
    ] {
        if is_so {
            text.push(' ');
            text.push_str(word);
        }
    }
}
