//! The pages of the comparison: a form, a shop, a login of three pages, and controls in frames and shadow roots.

use std::fmt::Write as _;

use browserspace_tests::{Page, Pages};

/// Fields of the form.
pub(crate) const FIELDS: usize = 10;

/// Controls in the frames and shadow roots, each behind another kind of border.
pub(crate) const CONTROLS: [&str; 7] = [
    "page",
    "frame",
    "frame in frame",
    "cross-origin frame",
    "frame in cross-origin frame",
    "open shadow root",
    "closed shadow root",
];

/// The server of the pages.
pub(crate) struct Site {
    pages: Pages,
}

impl Site {
    /// Serves them on a free port.
    pub(crate) async fn serve(rows: &[usize]) -> Self {
        let mut pages = vec![
            ("/form".to_owned(), Page::html(form())),
            ("/login".to_owned(), Page::html(step("Sign in", "User name", "Next", "/password", "user"))),
            ("/password".to_owned(), Page::html(step("Password", "Secret", "Sign in", "/welcome", "secret"))),
            ("/welcome".to_owned(), Page::html(WELCOME)),
            ("/controls".to_owned(), Page::html(CONTROLS_PAGE.replace("HIT", HIT))),
        ];
        let frame = |index: usize, inner: &str| {
            Page::html(format!("{HIT}<button onclick=hit({index})>Control {index}</button>{inner}"))
        };
        pages.push(("/frame".to_owned(), frame(1, "<iframe src=/inner></iframe>")));
        pages.push(("/inner".to_owned(), frame(2, "")));
        pages.push(("/far".to_owned(), frame(3, "<iframe src=/far-inner></iframe>")));
        pages.push(("/far-inner".to_owned(), frame(4, "")));
        pages.extend((0..CONTROLS.len()).map(|index| (format!("/hit/{index}"), Page::html(""))));
        pages.extend(rows.iter().map(|count| (format!("/shop/{count}"), Page::html(shop(*count)))));
        Self { pages: Pages::serve_all(pages).await }
    }

    /// The address of a page.
    pub(crate) fn url(&self, path: &str) -> String {
        self.pages.url(path)
    }

    /// What a browser that reaches nothing by itself must be allowed.
    pub(crate) fn hosts(&self) -> [String; 2] {
        [self.pages.host(), self.pages.host().replace("127.0.0.1", "localhost")]
    }

    /// How often the control was clicked so far.
    pub(crate) fn hits(&self, index: usize) -> usize {
        self.pages.hits(&format!("/hit/{index}"))
    }
}

/// Says to the server that a control was clicked.
const HIT: &str = "<script>const hit = (index) => fetch('/hit/' + index)</script>";

const WELCOME: &str = "<title>Welcome</title><h1>Welcome</h1><p id=out></p><script>
    const { user, secret } = sessionStorage;
    out.textContent = user && secret ? `Hello ${user}, ${secret.length} letters` : 'Nobody is signed in';
    sessionStorage.clear()</script>";

const CONTROLS_PAGE: &str = "<title>Controls</title>HIT<button onclick=hit(0)>Control 0</button>
    <iframe src=/frame width=400 height=250></iframe><iframe id=far width=400 height=250></iframe>
    <x-open></x-open><x-closed></x-closed><script>
    far.src = `http://localhost:${location.port}/far`;
    for (const [index, mode] of [[5, 'open'], [6, 'closed']]) {
        const root = document.querySelector('x-' + mode).attachShadow({ mode });
        root.innerHTML = `<button>Control ${index}</button>`;
        root.firstChild.onclick = () => hit(index);
    }</script>";

fn form() -> String {
    let mut page = "<title>Form</title><h1>Form</h1><form>".to_owned();
    for index in 1..=FIELDS {
        let line = writeln!(page, "<p><label>Field {index} <input id='Field {index}'></label>");
        line.expect("writing to a string succeeds");
    }
    page.push_str(
        "<p><button type=button id=Save>Save</button></form><p id=out>Nothing yet</p><script>
        document.getElementById('Save').onclick = () => out.textContent =
            'Saved ' + [...document.querySelectorAll('input')].map((field) => field.value).join(' ').trim()
        </script>",
    );
    page
}

fn step(title: &str, field: &str, button: &str, next: &str, key: &str) -> String {
    format!(
        "<title>{title}</title><h1>{title}</h1><form><label>{field} <input id='{field}'></label>
        <button id='{button}'>{button}</button></form><script>document.forms[0].onsubmit = (event) => {{
            event.preventDefault();
            sessionStorage.{key} = document.querySelector('input').value;
            location.href = '{next}';
        }}</script>"
    )
}

fn shop(rows: usize) -> String {
    let mut page = "<title>Shop</title><h1>Shop</h1><table><tbody>".to_owned();
    for row in 1..=rows {
        let line = writeln!(
            page,
            "<tr><td><a href=/item/{row}>Item {row}</a><td>Colour {row}<td>{row}.99 EUR\
             <td><input aria-label='Quantity of item {row}' value={row}><td><button>Buy item {row}</button>"
        );
        line.expect("writing to a string succeeds");
    }
    page
}

/// What of a shop an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    /// Rows of which both texts and all three controls are there, in their order.
    pub(crate) rows: usize,
    /// Whether links have their addresses.
    pub(crate) addresses: bool,
    /// Whether the fields have their values.
    pub(crate) values: bool,
    /// Whether one sees where a row begins.
    pub(crate) row_borders: bool,
}

impl Content {
    /// Reads an answer once, from its begin to its end.
    pub(crate) fn of(answer: &str, rows: usize) -> Self {
        let mut rest = answer;
        let whole = (1..=rows).take_while(|row| row_is_next(&mut rest, *row)).count();
        // The row whose number occurs nowhere else by chance.
        let last = format!("\"Quantity of item {rows}\"");
        let field = answer.lines().find(|line| line.contains(&last)).unwrap_or_default();
        let values = field.split_once(&last).is_some_and(|(_, rest)| rest.contains(&format!("{rows}")));
        let is_row = |line: &str| line.split_whitespace().any(|word| word.trim_end_matches(':') == "row");
        Self {
            rows: whole,
            addresses: answer.contains("/item/1"),
            values,
            row_borders: answer.lines().any(is_row),
        }
    }
}

fn row_is_next(rest: &mut &str, row: usize) -> bool {
    let needles = [
        format!("link \"Item {row}\""),
        format!("\"Colour {row}\""),
        format!("\"{row}.99 EUR\""),
        format!("textbox \"Quantity of item {row}\""),
        format!("button \"Buy item {row}\""),
    ];
    needles.iter().all(|needle| {
        let after = rest.find(needle.as_str()).map(|at| &rest[at + needle.len()..]);
        *rest = after.unwrap_or(rest);
        after.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(row: usize) -> String {
        format!(
            "e1 link \"Item {row}\"\n\"Colour {row}\"\n\"{row}.99 EUR\"\ne2 textbox \"Quantity of item {row}\" =\"{row}\"\ne3 button \"Buy item {row}\"\n"
        )
    }

    #[test]
    fn a_row_counts_only_with_all_its_texts_and_controls() {
        let whole = [1, 2, 3].map(line).concat();
        let content = Content { rows: 3, addresses: false, values: true, row_borders: false };
        assert_eq!(Content::of(&whole, 3), content);
        for lost in [
            "link \"Item 3\"",
            "\"Colour 3\"",
            "\"3.99 EUR\"",
            "textbox \"Quantity of item 3\"",
            "button \"Buy item 3\"",
        ] {
            assert_eq!(Content::of(&whole.replace(lost, ""), 3).rows, 2, "{lost}");
        }
        assert!(!Content::of(&whole.replace(" =\"3\"", ""), 3).values);
        assert!(Content::of("- row:\n  - /url: /item/1", 3).row_borders);
        assert!(Content::of("- row:\n  - /url: /item/1", 3).addresses);
    }
}
