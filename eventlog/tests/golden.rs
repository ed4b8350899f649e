//! Every event ever released still decodes, and today's shapes still have yesterday's bytes.
//!
//! A file is `golden/<stream>.<kind>.<schema>.msgpack`: one payload, as it lies in the log. A new kind or schema
//! needs a new file: add it to `golden/samples.json`, then run this test with `GOLDEN_WRITE=1`, which writes what is
//! missing and never overwrites. A file that differs means that released bytes have changed: write an upcast.

use std::{collections::BTreeSet, fs, path::PathBuf};

use eventlog::{
    DownloadEvent, Event, InstanceEvent, ServerEvent, SpaceEvent, StreamKind, WorkspaceEvent,
    codec::{decode_event, encode_event},
};
use serde_json::Value;

const STREAMS: [(&str, StreamKind, &[&str]); 5] = [
    ("space", StreamKind::Space, SpaceEvent::KINDS),
    ("instance", StreamKind::Instance, InstanceEvent::KINDS),
    ("workspace", StreamKind::Workspace, WorkspaceEvent::KINDS),
    ("server", StreamKind::Server, ServerEvent::KINDS),
    ("downloads", StreamKind::Downloads, DownloadEvent::KINDS),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The samples: every field set, by stream and kind.
fn samples() -> Vec<(&'static str, StreamKind, Event)> {
    let text = fs::read_to_string(folder().join("samples.json")).expect("the samples are there");
    let all: Value = serde_json::from_str(&text).expect("the samples are JSON");
    let mut samples = Vec::new();
    for (name, stream, kinds) in STREAMS {
        for kind in kinds {
            let payload = &all[name][kind];
            assert!(payload.is_object(), "{name}.{kind} has no sample in samples.json");
            let tagged = serde_json::json!({ "kind": kind, "payload": payload });
            samples.push((name, stream, from_json(stream, tagged)));
        }
    }
    samples
}

fn from_json(stream: StreamKind, tagged: Value) -> Event {
    match stream {
        StreamKind::Space => Event::Space(serde_json::from_value(tagged).expect("a Space's event")),
        StreamKind::Instance => Event::Instance(serde_json::from_value(tagged).expect("an instance's event")),
        StreamKind::Workspace => {
            Event::Workspace(serde_json::from_value(tagged).expect("a Workspace's event"))
        }
        StreamKind::Server => Event::Server(serde_json::from_value(tagged).expect("a server's event")),
        StreamKind::Downloads => Event::Download(serde_json::from_value(tagged).expect("a download's event")),
    }
}

#[test]
fn every_kind_of_event_has_golden_bytes_and_keeps_them() {
    let write = std::env::var_os("GOLDEN_WRITE").is_some();
    for (name, stream, event) in samples() {
        let encoded = encode_event(&event).expect("it encodes");
        let path = folder().join(format!("{name}.{}.{}.msgpack", encoded.kind, encoded.schema));
        if write && !path.exists() {
            fs::write(&path, &encoded.payload).expect("the folder takes it");
        }
        let golden = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(hex::encode(&encoded.payload), hex::encode(&golden), "{}", path.display());
        let decoded = decode_event(stream, &encoded.kind, encoded.schema, &golden).expect("it decodes");
        assert_eq!(decoded, event, "{}", path.display());
    }
}

#[test]
fn every_golden_file_decodes_to_a_known_event() {
    let mut kinds = BTreeSet::new();
    for entry in fs::read_dir(folder()).expect("the folder is there") {
        let name = entry.expect("it lists").file_name().into_string().expect("a plain name");
        let Some(stem) = name.strip_suffix(".msgpack") else { continue };
        let [stream, kind, schema] = stem.split('.').collect::<Vec<_>>()[..] else { panic!("{name}") };
        let (_, stream_kind, known) =
            STREAMS.into_iter().find(|(known, ..)| *known == stream).expect("a stream kind");
        assert!(known.contains(&kind), "{name}: a released kind may not disappear");
        let payload = fs::read(folder().join(&name)).expect("it reads");
        let schema = schema.parse().expect("a schema number");
        let event = decode_event(stream_kind, kind, schema, &payload).expect("it decodes");
        assert!(!matches!(event, Event::Unknown(_)), "{name} is not known any more");
        assert_eq!(event.kind(), kind);
        kinds.insert((stream.to_owned(), kind.to_owned()));
    }
    let expected: usize = STREAMS.iter().map(|(_, _, known)| known.len()).sum();
    assert_eq!(kinds.len(), expected, "each kind has at least one file");
}

/// Fields that a kind has gained since its first release, without another schema.
#[test]
fn an_opened_with_an_environment_has_golden_bytes_of_its_own() {
    let text = fs::read_to_string(folder().join("samples.json")).expect("the samples are there");
    let all: Value = serde_json::from_str(&text).expect("the samples are JSON");
    let mut payload = all["space"]["opened"].clone();
    payload["environment"] = serde_json::json!({
        "timezone": "Europe/Berlin", "locale": "de-DE", "viewport": { "width": 400, "height": 800 }, "device_scale": 2.5,
        "colour_scheme": "dark", "user_agent": "Agent/1", "start_page": "https://example.org/",
        "allowed_hosts": ["example.org:8443"]
    });
    let event = from_json(StreamKind::Space, serde_json::json!({ "kind": "opened", "payload": payload }));
    let encoded = encode_event(&event).expect("it encodes");
    let path = folder().join("space.opened.1.environment.bin");
    if std::env::var_os("GOLDEN_WRITE").is_some() && !path.exists() {
        fs::write(&path, &encoded.payload).expect("the folder takes it");
    }
    let golden = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(hex::encode(&encoded.payload), hex::encode(&golden), "{}", path.display());
    let decoded = decode_event(StreamKind::Space, "opened", encoded.schema, &golden).expect("it decodes");
    assert_eq!((decoded, encoded.schema), (event, 1));
}

#[test]
fn a_payload_without_its_optional_fields_still_decodes() {
    let payload =
        rmp_serde::to_vec_named(&serde_json::json!({ "code": "runtime_crashed" })).expect("it packs");
    let event = decode_event(StreamKind::Space, "faulted", 1, &payload).expect("it decodes");
    assert_eq!(
        event,
        SpaceEvent::Faulted { code: "runtime_crashed".into(), generation: None }.into(),
        "an absent optional field is none"
    );
}

/// Not the codec alone: header, frames, commit, footer, hashes. The bytes are made of nothing but the fixtures.
#[tokio::test]
async fn a_log_written_today_has_the_bytes_of_the_first_release_and_that_one_still_opens() {
    use eventlog::{EventLog, OpenOptions, SegmentLog, fixture, segment::verify};
    let folder_of = |temporary: &tempfile::TempDir| temporary.path().to_owned();
    let options = |folder: &std::path::Path| OpenOptions {
        segment_bytes: 600,
        free_bytes_min: 0,
        ..OpenOptions::new(folder)
    };
    let (made, kept) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let log = SegmentLog::open(options(&folder_of(&made))).expect("it opens");
    for n in 1..=3 {
        let append = fixture::append(fixture::command(n), fixture::space(n % 2), vec![fixture::recovered(n)]);
        log.append(append).await.expect("it is stored");
    }
    log.close().await;
    let names = ["seg-00000000000000000001.log", "seg-00000000000000000003.log"];
    for name in names {
        let bytes = fs::read(made.path().join(name)).expect("the log has this segment");
        let path = folder().join(name);
        if std::env::var_os("GOLDEN_WRITE").is_some() && !path.exists() {
            fs::write(&path, &bytes).expect("the folder takes it");
        }
        let golden = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(hex::encode(&bytes), hex::encode(&golden), "{name}");
        fs::write(kept.path().join(name), golden).expect("it is written");
    }
    assert_eq!(verify(kept.path()).expect("it is whole").head.0, 3);
    let log = SegmentLog::open(options(&folder_of(&kept))).expect("it opens");
    assert_eq!(log.durable_head().borrow().0, 3);
}
