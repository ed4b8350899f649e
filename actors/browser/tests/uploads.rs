//! Files for pages: by a field, by its label, by the chooser that a click opens; as copies that go with the document.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{Seek, Write};
use std::time::Duration;

use browser::results::*;
use browser::{Check, Error, OutsideFile};
use common::{World, args, call, profile, ref_of, world};
use serde_json::json;

const PAGE: &str = r#"<title>up</title><input type=file id=one aria-label="One">
<input type=file multiple aria-label="Many" onchange="document.title=[...this.files].map(f=>f.name+':'+f.size).join()">
<label style="display:block">Labelled<input type=file style="display:none" onchange="this.files[0].text().then(t=>document.title=t);this.value=''"></label>
<button onclick="kept.click()">Choose</button><input id=kept type=file multiple style="display:none" onchange="document.title='chosen '+this.files.length">
<button onclick="document.title='clicked'">Nothing</button><input type=file disabled aria-label="Closed"><input type=file webkitdirectory aria-label="Folder">
<button onclick="one.files[0].text().then(t=>document.title='late '+t)">Late</button>"#;

fn file(name: &str, text: &str) -> OutsideFile {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.rewind().unwrap();
    OutsideFile { name: name.to_owned(), file, bytes: text.len() as u64 }
}

/// What the args hold is for the schema; the files themselves come beside them.
async fn upload(world: &World, reference: &str, files: Vec<OutsideFile>) -> Result<UploadResult, Error> {
    let named: Vec<_> = files.iter().map(|_| "art_00000000000000000000000000").collect();
    world.browser.upload(&args(json!({ "ref": reference, "files": named })), files, &call()).await
}

fn accepted(result: &UploadResult) -> Vec<(&str, u64)> {
    result.accepted.iter().flatten().map(|file| (file.name.as_str(), file.bytes)).collect()
}

/// The copies that lie in the profile.
fn copies(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(profile(&world.folder)).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("given-")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn c11_a_page_sees_the_files_whole_reads_them_late_and_its_copies_go_with_it() {
    let world = world(&[("/", PAGE), ("/other", "<title>other</title>")]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let named = |name: &str| ref_of(&text, &format!("\"{name}"));
    let one = upload(&world, &named("One"), vec![file("a.png", "tea")]).await.unwrap();
    assert_eq!((accepted(&one), one.page.effect), (vec![("a.png", 3)], Effect::Done));
    let many = vec![file("a.png", "tea"), file("b.pdf", "漢字"), file("c.bin", "")];
    let many = upload(&world, &named("Many"), many).await.unwrap();
    assert_eq!(accepted(&many), [("a.png", 3), ("b.pdf", 6), ("c.bin", 0)]);
    assert_eq!(many.page.title, "a.png:3,b.pdf:6,c.bin:0");
    let chosen =
        upload(&world, &named("Choose"), vec![file("a.png", "x"), file("b.png", "y")]).await.unwrap();
    assert_eq!((chosen.page.title.as_str(), accepted(&chosen).len()), ("chosen 2", 2));
    assert_eq!(world.click_named("\"Late\"").await.effect, Effect::Done);
    world.browser.wait(&args(json!({ "ms": 100 })), &call()).await.unwrap();
    assert_eq!(world.title().await, "late tea", "a file can be read long after");
    assert_eq!(copies(&world).len(), 3);
    let url = world.site.url("localhost", "/other");
    world.browser.navigate(&args(json!({ "url": url })), &call()).await.unwrap();
    for _ in 0..100 {
        if copies(&world).is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(copies(&world).is_empty(), "{:?}", copies(&world));
    assert_eq!(upload(&world, &named("One"), vec![file("a", "x")]).await.unwrap_err().code(), "stale_ref");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn c11_what_a_field_does_not_take_is_refused_before_the_page_hears_of_it() {
    let world = world(&[("/", PAGE)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let named = |name: &str| ref_of(&text, &format!("\"{name}"));
    let two = || vec![file("a.png", "x"), file("b.png", "y")];
    for (name, files, problem) in [("One", two(), "takes one file only"), ("Folder", two(), "takes a folder")]
    {
        let refused = upload(&world, &named(name), files).await.unwrap_err();
        assert_eq!((refused.code(), refused.may_have_run()), ("invalid_args", false), "{refused}");
        assert!(refused.to_string().contains(problem), "{refused}");
    }
    let closed = upload(&world, &named("Closed"), vec![file("a.png", "x")]).await.unwrap_err();
    assert!(matches!(closed, Error::ElementNotActionable { check: Check::Enabled, .. }), "{closed:?}");
    let elsewhere = upload(&world, &named("One"), vec![file("../../a.png", "x")]).await.unwrap_err();
    assert_eq!((elsewhere.code(), elsewhere.may_have_run()), ("internal", false));
    assert_eq!(world.title().await, "up", "the page has heard of nothing");
    assert!(copies(&world).is_empty());
    let nothing = upload(&world, &named("Nothing"), vec![file("a.png", "x")]).await.unwrap_err();
    assert_eq!((nothing.code(), nothing.may_have_run()), ("no_file_chooser", true), "it was clicked");
    assert_eq!(world.title().await, "clicked");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_empties_its_field_at_once_has_got_the_file_all_the_same() {
    let page = PAGE.replace("style=\"display:none\" onchange=\"this.files[0]", "onchange=\"this.files[0]");
    let world = world(&[("/", &page)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    let field = text
        .lines()
        .find(|line| line.contains("\"Labelled") && line.trim_start().starts_with('e'))
        .unwrap_or_else(|| panic!("{text}"));
    let reference = field.split_whitespace().next().unwrap();
    let emptied = upload(&world, reference, vec![file("a.png", "content")]).await.unwrap();
    assert_eq!((accepted(&emptied), emptied.page.effect), (vec![("a.png", 7)], Effect::Done));
    world.browser.wait(&args(json!({ "ms": 100 })), &call()).await.unwrap();
    assert_eq!(world.title().await, "content");
    world.end().await;
}
