//! From trees to lines: what is worth a line, what merges into another, and what gets a ref.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use super::ax::{AxNode, AxTree, is_field};
use super::key;
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

/// The tree of one frame, not yet decoded; `None` if it could not be read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) frame: PageFrame,
    pub(crate) tree: Option<Bytes>,
    pub(crate) join: Join,
}

/// Everything that lines are made from.
#[derive(Debug)]
pub(crate) struct Render {
    pub(crate) hub: Hub,
    pub(crate) options: SnapshotArgs,
    pub(crate) root: Option<NodeKey>,
    pub(crate) missing: bool,
    pub(crate) secrets: HashSet<NodeKey>,
    pub(crate) sources: Vec<Source>,
}

/// A decoded tree with its nodes by id.
struct Tree<'a> {
    frame: &'a PageFrame,
    nodes: Vec<AxNode<'a>>,
    by_id: HashMap<&'a str, usize>,
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
    /// The lines of the page; `None` if the root that was asked for is not in it.
    pub(crate) fn lines(&self) -> serde_json::Result<Option<Vec<String>>> {
        let mut trees = Vec::new();
        let mut joins: HashMap<(&str, i64), Option<usize>> = HashMap::new();
        let mut top = None;
        for source in &self.sources {
            let tree = source.tree.as_deref().map(|bytes| decode(&source.frame, bytes)).transpose()?;
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
        let Some((tree, node)) = self.start(&trees, top) else { return Ok(None) };
        let mut walk = Walk { render: self, trees: &trees, joins, lines: Lines::default() };
        walk.run(tree, node);
        if self.missing {
            walk.lines.push(0, "(a frame of this page could not be read)", false);
        }
        Ok(Some(walk.lines.lines))
    }

    fn start(&self, trees: &[Tree<'_>], top: Option<usize>) -> Option<(usize, usize)> {
        let Some(root) = &self.root else {
            return top.filter(|top| !trees[*top].nodes.is_empty()).map(|top| (top, 0));
        };
        trees.iter().enumerate().find_map(|(index, tree)| {
            let is_frame = tree.frame.session == root.session
                && tree.frame.id == root.frame
                && tree.frame.loader == root.loader;
            let node = tree.nodes.iter().position(|node| node.backend_node_id == Some(root.node))?;
            is_frame.then_some((index, node))
        })
    }
}

fn decode<'a>(frame: &'a PageFrame, bytes: &'a [u8]) -> serde_json::Result<Tree<'a>> {
    let AxTree { nodes } = serde_json::from_slice(bytes)?;
    let by_id = nodes.iter().enumerate().map(|(index, node)| (node.node_id, index)).collect();
    Ok(Tree { frame, nodes, by_id })
}

struct Walk<'a> {
    render: &'a Render,
    trees: &'a [Tree<'a>],
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
        let role = node.role();
        let name = squeeze(&node.name());
        if role == "StaticText" {
            self.text(at, &name);
            return;
        }
        if self.is_passed_over(node, &role, &name) {
            self.descend(&Waiting { inside: inside(&role, &name, at.inside), ..at.clone() }, waiting);
            return;
        }
        if self.is_dropped(&role, &name) {
            return;
        }
        let line = self.line(at, node, &role, &name);
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
        match role.as_ref() {
            "Iframe" | "IframePresentational" => self.enter(at, node, depth, waiting),
            // What a field holds is its value.
            _ if is_field(&role) && !node.value().is_empty() && role != "combobox" => {}
            _ => {
                let above: Option<Rc<str>> =
                    if name.is_empty() { at.above.clone() } else { Some(name.into()) };
                let inside = inside(&role, above.as_deref().unwrap_or_default(), at.inside);
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
    fn is_passed_over(&self, node: &AxNode<'_>, role: &str, name: &str) -> bool {
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
            "generic" | "Section" | "Pre" => name.is_empty() || !node.is("focusable"),
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

    fn line(&self, at: &Waiting, node: &AxNode<'_>, role: &str, name: &str) -> Line {
        let options = &self.render.options;
        let field = node.backend_node_id.map(|id| key(self.trees[at.tree].frame, id));
        let mut text = String::new();
        let is_chosen = role == "option" && at.inside == Inside::Select;
        let is_wanted = options.full || is_acted_on(role) || (node.is("focusable") && !is_chosen);
        // Locked for a moment only: the connection's reader needs the state too.
        let intern = |key| self.render.hub.state().references.intern(key);
        let reference = field.clone().filter(|_| is_wanted).map(intern);
        if let Some(reference) = reference {
            text.push_str(&format!("{reference} "));
        }
        match node.property("level").filter(|_| role == "heading") {
            Some(level) => text.push_str(&format!("h{level}")),
            None => text.push_str(role_word(role)),
        }
        // The name of a row is the text of its cells, which follows.
        let named = !name.is_empty() && (options.full || !matches!(role, "row" | "listitem"));
        if named {
            text.push(' ');
            text.push_str(&quote(name, NAME_CHARS_MAX));
        }
        push_states(&mut text, node, role);
        let value = node.value();
        if !value.is_empty() {
            if field.is_some_and(|key| self.render.secrets.contains(&key)) {
                text.push_str(&format!(" (filled, {} hidden)", value.chars().count()));
            } else if squeeze(&value) != name {
                text.push_str(&format!(" ={}", quote(&value, NAME_CHARS_MAX)));
            }
        }
        if let Some(url) =
            node.property("url").filter(|url| options.urls && !url.is_empty() && role == "link")
        {
            text.push_str(&format!(" url={}", quote(&url, NAME_CHARS_MAX * 5)));
        }
        Line {
            is_bare: !named && value.is_empty() && reference.is_none(),
            has_ref: reference.is_some(),
            text,
        }
    }

    /// Puts the children of `from` next, with what `from` says about them.
    fn descend(&self, from: &Waiting, waiting: &mut Vec<Waiting>) {
        let tree = &self.trees[from.tree];
        let children = tree.nodes[from.node].child_ids.iter().rev().filter_map(|id| tree.by_id.get(id));
        waiting.extend(children.map(|node| Waiting { node: *node, ..from.clone() }));
    }

    /// Goes on in the document that an iframe shows.
    fn enter(&mut self, at: &Waiting, node: &AxNode<'_>, depth: usize, waiting: &mut Vec<Waiting>) {
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
        "DisclosureTriangle" => "disclosure",
        other => other,
    }
}

fn push_states(text: &mut String, node: &AxNode<'_>, role: &str) {
    for state in ["checked", "pressed"] {
        match node.property(state).as_deref() {
            Some("true") => text.push_str(&format!(" {state}")),
            Some("mixed") => text.push_str(" mixed"),
            _ => {}
        }
    }
    match node.property("expanded").as_deref() {
        Some("true") => text.push_str(" expanded"),
        Some("false") => text.push_str(" collapsed"),
        _ => {}
    }
    for state in ["selected", "disabled", "readonly", "required", "modal", "busy", "focused"] {
        // A field that is set to be read-only says so; what cannot be typed into anyway need not.
        if node.is(state) && (state != "readonly" || is_field(role)) {
            text.push(' ');
            text.push_str(state);
        }
    }
    if node.property("invalid").is_some_and(|invalid| !matches!(invalid.as_ref(), "false" | "")) {
        text.push_str(" invalid");
    }
}
