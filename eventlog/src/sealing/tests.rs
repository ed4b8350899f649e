//! Promises of the key store.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::id::SpaceId;

const ARGS: &[u8] = br#"{"text":"s3cr3t-M4rker"}"#;

fn folder() -> TempDir {
    TempDir::new().expect("a temporary folder can be made")
}

fn open(dir: &Path, live: &[KeyId]) -> KeyStore {
    KeyStore::open(dir, |key| live.contains(&key)).expect("the store opens")
}

fn files(dir: &Path) -> Vec<Vec<u8>> {
    let read = |entry: io::Result<fs::DirEntry>| {
        fs::read(entry.expect("it is listed").path()).expect("it can be read")
    };
    dir.read_dir().expect("the folder is there").map(read).collect()
}

fn copy(from: &Path) -> TempDir {
    let to = folder();
    for entry in from.read_dir().expect("the folder is there") {
        let entry = entry.expect("it is listed");
        fs::copy(entry.path(), to.path().join(entry.file_name())).expect("it can be copied");
    }
    to
}

fn raw(store: &KeyStore, key: KeyId) -> Vec<u8> {
    store.shared.keys.lock().held[&key].to_vec()
}

fn is_on_disk(dir: &Path, bytes: &[u8]) -> bool {
    files(dir).iter().any(|file| file.windows(bytes.len()).any(|window| window == bytes))
}

#[tokio::test]
async fn sealed_args_open_only_with_their_context() {
    let store = KeyStore::in_memory();
    let key = store.take().await.expect("a key");
    let stream = StreamId::Space(SpaceId::from_uuid(Uuid::from_u128(1)));
    let task = TaskId::from_uuid(Uuid::from_u128(2));
    let sealed = store.seal(key, &args_context(&stream, task), ARGS).expect("it seals");
    assert!(!sealed.ciphertext.windows(13).any(|window| window == b"s3cr3t-M4rker"));
    let opened = store.unseal(&sealed, &args_context(&stream, task)).expect("it opens");
    assert_eq!(opened.expose().as_slice(), ARGS);

    let other = args_context(&stream, TaskId::from_uuid(Uuid::from_u128(3)));
    assert!(matches!(store.unseal(&sealed, &other), Err(KeyError::DoesNotOpen(id)) if id == key));
    let mut damaged = sealed.clone();
    damaged.ciphertext[0] ^= 1;
    assert!(store.unseal(&damaged, &args_context(&stream, task)).is_err());
    let short = Sealed { nonce: vec![0; 12], ..sealed };
    assert!(store.unseal(&short, &args_context(&stream, task)).is_err());
}

#[tokio::test]
async fn a_taken_key_is_durable_and_a_destroyed_one_is_in_no_file() {
    let dir = folder();
    let store = open(dir.path(), &[]);
    let (ended, live) = (store.take().await.expect("a key"), store.take().await.expect("a key"));
    let (ended_bytes, live_bytes) = (raw(&store, ended), raw(&store, live));
    let sealed = store.seal(ended, b"c", ARGS).expect("it seals");
    assert!(is_on_disk(dir.path(), &ended_bytes) && is_on_disk(dir.path(), &live_bytes));

    store.destroy(ended);
    assert!(matches!(store.unseal(&sealed, b"c"), Err(KeyError::Missing(id)) if id == ended));
    store.flush().await.expect("it is gone from the disk");
    assert!(!is_on_disk(dir.path(), &ended_bytes));
    assert!(is_on_disk(dir.path(), &live_bytes));
    drop(store);

    let store = open(dir.path(), &[ended, live]);
    assert!(store.unseal(&sealed, b"c").is_err());
    assert!(store.seal(live, b"c", ARGS).is_ok());
}

#[tokio::test]
async fn a_needed_key_that_is_lost_is_made_anew_under_its_name_and_is_another_one() {
    let dir = folder();
    let store = open(dir.path(), &[]);
    let (lost, kept) = (store.take().await.expect("a key"), store.take().await.expect("a key"));
    let name: CapabilityName = "navigate".parse().expect("a name");
    let print = |store: &KeyStore, key| store.fingerprint(key, &name, &serde_json::json!({"a": 1}));
    let before = print(&store, lost).expect("it is held");
    drop(store);
    let file = dir.path().join(format!("{:016x}.keys", lost.file));
    fs::remove_file(&file).expect("it is removed");
    assert!(print(&open(dir.path(), &[lost]), lost).is_err(), "nobody said that it is needed");
    let needed = [lost, kept];
    let opened = KeyStore::open_remaking(dir.path(), |key| needed.contains(&key), &needed);
    let (store, remade) = opened.expect("it opens");
    assert_eq!(remade, needed);
    let after = print(&store, lost).expect("it is held");
    assert_ne!(after, before);
    drop(store);
    let again = KeyStore::open_remaking(dir.path(), |key| needed.contains(&key), &needed);
    let (store, remade) = again.expect("it opens");
    assert_eq!(remade, [], "it was durable");
    assert_eq!(print(&store, lost).expect("it is held"), after);
    store.destroy(lost);
    store.destroy(kept);
    store.flush().await.expect("the disk takes it");
    assert!(!file.exists());
}

#[tokio::test]
async fn after_a_crash_only_live_keys_are_left() {
    let dir = folder();
    let store = open(dir.path(), &[]);
    let (ended, live) = (store.take().await.expect("a key"), store.take().await.expect("a key"));
    let ended_bytes = raw(&store, ended);
    let sealed = store.seal(live, b"c", ARGS).expect("it seals");
    // The disk as a kill at this point leaves it: the key was destroyed in memory only.
    let crashed = copy(dir.path());
    fs::write(crashed.path().join("00000000000000ff.new"), b"half").expect("it is written");
    let unused: Vec<u8> = files(crashed.path()).iter().flatten().copied().collect();

    let store = open(crashed.path(), &[live]);
    assert!(!is_on_disk(crashed.path(), &ended_bytes));
    assert_eq!(store.held_count(), 1);
    assert_eq!(store.unseal(&sealed, b"c").expect("it opens").expose().as_slice(), ARGS);
    let old: Vec<&[u8]> = unused[32..].chunks_exact(32).collect();
    for _ in 0..100 {
        let next = store.take().await.expect("a key");
        assert_ne!(next.file, live.file, "a slot of an earlier boot was given out");
        assert!(!old.contains(&raw(&store, next).as_slice()));
    }
    assert!(!crashed.path().join("00000000000000ff.new").exists());
}

#[tokio::test]
async fn a_file_without_a_live_key_is_removed_so_that_the_disk_use_is_bounded() {
    let dir = folder();
    for _ in 0..5 {
        drop(open(dir.path(), &[]));
    }
    assert_eq!(files(dir.path()).len(), 1, "each boot removed the file of the one before");

    let store = open(dir.path(), &[]);
    for _ in 0..3 * key_file::SLOTS {
        let key = store.take().await.expect("keys are made as they are used");
        store.destroy(key);
    }
    store.flush().await.expect("they are gone");
    assert!(files(dir.path()).len() <= 2, "{} files", files(dir.path()).len());
}

#[tokio::test]
async fn dropping_the_store_destroys_what_was_told_to_be_destroyed() {
    let dir = folder();
    let store = open(dir.path(), &[]);
    let key = store.take().await.expect("a key");
    let bytes = raw(&store, key);
    store.destroy(key);
    store.destroy(key);
    drop(store);
    assert!(!is_on_disk(dir.path(), &bytes));
}

#[tokio::test]
async fn only_we_can_read_the_files() {
    let dir = folder();
    let keys = dir.path().join("deep/keys");
    drop(open(&keys, &[]));
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&keys), 0o700);
    let file = keys.read_dir().expect("it is there").next().expect("one file").expect("it is listed");
    assert_eq!(mode(&file.path()), 0o600);
}

#[tokio::test]
async fn a_damaged_file_refuses_the_start_and_loses_nothing() {
    let dir = folder();
    let store = open(dir.path(), &[]);
    let key = store.take().await.expect("a key");
    drop(store);
    let path = dir.path().join(format!("{:016x}.keys", key.file));
    let whole = fs::read(&path).expect("it can be read");
    for damaged in [&whole[..whole.len() - 1], &[b"x", &whole[1..]].concat(), &[]] {
        fs::write(&path, damaged).expect("it is written");
        let opened = KeyStore::open(dir.path(), |_| true);
        assert!(matches!(opened, Err(KeyError::Damaged(file)) if file == key.file));
        assert_eq!(fs::read(&path).expect("it can be read"), damaged);
    }
}

#[tokio::test]
async fn while_the_disk_refuses_no_key_is_given_out() {
    let dir = folder();
    let keys = dir.path().join("keys");
    let store = open(&keys, &[]);
    let key = store.take().await.expect("a key");
    // A folder in place of the file: no write to it can succeed, for root either.
    let path = keys.join(format!("{:016x}.keys", key.file));
    fs::rename(&path, dir.path().join("aside")).expect("it is moved");
    fs::create_dir(&path).expect("it is made");
    store.destroy(key);
    assert!(matches!(store.flush().await, Err(KeyError::Unavailable(_))));
    assert!(matches!(store.take().await, Err(KeyError::Unavailable(_))));

    fs::remove_dir(&path).expect("it is removed");
    fs::rename(dir.path().join("aside"), &path).expect("it is moved back");
    store.flush().await.expect("it is tried again");
    assert!(store.take().await.is_ok());
}

#[tokio::test]
async fn a_fingerprint_tells_the_meaning_and_not_the_spelling() {
    let store = KeyStore::in_memory();
    let (key, other) = (store.take().await.expect("a key"), store.take().await.expect("a key"));
    let click: CapabilityName = "click".parse().expect("a name");
    let of = |key, args: &Json| store.fingerprint(key, &click, args).expect("the key is there");
    let args = json!({ "a": 1, "b": [{ "x": null, "y": "z" }] });
    assert_eq!(of(key, &args), of(key, &json!({ "b": [{ "y": "z", "x": null }], "a": 1 })));
    for different in [
        json!({ "a": 1, "b": [{ "x": null, "y": "Z" }] }),
        json!({ "a": "1", "b": [{ "x": null, "y": "z" }] }),
        json!({ "a": 1, "b": { "x": null, "y": "z" } }),
        json!({}),
    ] {
        assert_ne!(of(key, &args), of(key, &different));
    }
    assert_ne!(of(key, &args), of(other, &args));
    let type_text: CapabilityName = "type".parse().expect("a name");
    assert_ne!(of(key, &args), store.fingerprint(key, &type_text, &args).expect("the key is there"));
    store.destroy(key);
    assert!(matches!(store.fingerprint(key, &click, &args), Err(KeyError::Missing(_))));
}
