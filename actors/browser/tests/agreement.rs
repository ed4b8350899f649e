//! Both engines read the same: every page of the zoo, line by line.
//!
//! Left out of the zoo: content that is skipped while it is out of view (`content-visibility`; neither reads it before it
//! was laid out once), the bullets of a list that is said to be none, and texts that CSS gives to its images.

#![allow(clippy::unwrap_used)]

mod common;

use browser::args::SnapshotArgs;
use common::{args, call, world};

/// The pages of the zoo.
const ZOO: [(&str, &str); 13] = [
    ("/aria", include_str!("pages/aria.html")),
    ("/frames", include_str!("pages/frames.html")),
    ("/hidden", include_str!("pages/hidden.html")),
    ("/inner.html", include_str!("pages/inner.html")),
    ("/labels", include_str!("pages/labels.html")),
    ("/listing", include_str!("pages/listing.html")),
    ("/modal", include_str!("pages/modal.html")),
    ("/scroll", include_str!("pages/scroll.html")),
    ("/secrets", include_str!("pages/secrets.html")),
    ("/shadow", include_str!("pages/shadow.html")),
    ("/states", include_str!("pages/states.html")),
    ("/tables", include_str!("pages/tables.html")),
    ("/text", include_str!("pages/text.html")),
];

#[tokio::test(flavor = "multi_thread")]
async fn our_own_engine_and_the_accessibility_tree_read_every_page_of_the_zoo_alike() {
    let world = world(&ZOO).await;
    let mut wrong = String::new();
    for (path, _) in ZOO {
        world.open(path).await;
        for options in ["{}", r#"{"urls":true}"#, r#"{"interactive":true}"#, r#"{"compact":true}"#] {
            let wanted: SnapshotArgs = args(serde_json::from_str(options).unwrap());
            let tree = world.browser.lines_by(true, &wanted, &call()).await.unwrap();
            let own = world.browser.lines_by(false, &wanted, &call()).await.unwrap();
            if tree != own {
                let (tree, own) = (tree.join("\n"), own.join("\n"));
                wrong.push_str(&format!("\n==== {path} {options}\n---- tree\n{tree}\n---- own\n{own}\n"));
                break;
            }
        }
    }
    world.end().await;
    assert!(wrong.is_empty(), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_browser_draws_is_read_from_its_own_tree() {
    let page = "<title>media</title><video controls></video><details><p>Body</p></details>";
    let world = world(&[("/", page)]).await;
    world.open("/").await;
    let text = world.snapshot().await;
    assert!(text.contains("button \"play\"") && text.contains("disclosure \"Details\""), "{text}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_hundred_thousand_nodes_is_read_whole() {
    let page =
        "<title>large</title><script>document.write('<p>p</p><button>b</button>'.repeat(25000))</script>";
    let world = world(&[("/", page)]).await;
    world.open("/").await;
    let wanted = args(serde_json::json!({ "timeout_ms": 30_000 }));
    let lines = world.browser.lines_by(false, &wanted, &call()).await.unwrap();
    assert_eq!(lines.len(), 50_000);
    world.end().await;
}
