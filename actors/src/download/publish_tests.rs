use std::{
    collections::BTreeMap,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    process::Command,
};

use eventlog::{Redactor, Timestamp};
use uuid::Uuid;

use super::*;

const BYTES: &[u8] = b"%PDF-1.7 a report";
/// In which folder a child of a test releases, and at which step it is killed.
const CHILD: &str = "BROWSERSPACE_TEST_RELEASE";

fn space() -> SpaceId {
    SpaceId::from_uuid(Uuid::from_u128(1))
}

fn id() -> DownloadId {
    DownloadId::from_uuid(Uuid::from_u128(2))
}

fn receipt(bytes: &[u8]) -> Receipt {
    let redactor = Redactor::new();
    Receipt {
        url: redactor.text("https://example.org/report?token=abcdefgh"),
        suggested_filename: redactor.text("report.pdf"),
        bytes: bytes.len() as u64,
        sha256: hex::encode(<sha2::Sha256 as sha2::Digest>::digest(bytes)),
        claimed_media_type: "application/pdf".to_owned(),
        sniffed_media_type: "application/pdf".to_owned(),
        workspace: "default".parse().unwrap(),
        captured_at: Timestamp(1_796_052_600_000_000),
    }
}

fn approval(name: &str, receipt: &Receipt) -> Approval {
    Approval {
        sha256: receipt.sha256.clone(),
        bytes: receipt.bytes,
        approved_at: Timestamp(1_796_052_700_000_000),
        authorized_principal: "operator-1".parse().unwrap(),
        authorized_principal_scope: "*".to_owned(),
        declared_operator: Redactor::new().text(name),
    }
}

fn captured(data: &Path) -> Quarantine {
    let quarantine = Quarantine::new(data, space());
    let folder = data.join(super::super::quarantine::FOLDER).join(space().to_string());
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(id().to_string()), BYTES).unwrap();
    quarantine
}

fn release(data: &Path, name: &str, step: Step<'_>) -> Result<(), PublishError> {
    let (receipt, quarantine) = (receipt(BYTES), Quarantine::new(data, space()));
    let approval = approval(name, &receipt);
    let publication = Publication { space: space(), download: id(), receipt: &receipt, approval: &approval };
    publication.publish(data, &quarantine, step)
}

/// The files under final names, with their bytes, and how many others there are.
fn published(data: &Path) -> (BTreeMap<String, Vec<u8>>, usize) {
    let Ok(entries) = fs::read_dir(folder(data, space())) else { return Default::default() };
    let all: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let last = all.iter().filter(|path| !name(path).starts_with('.'));
    let last: BTreeMap<_, _> = last.map(|path| (name(path), fs::read(path).unwrap())).collect();
    let others = all.len() - last.len();
    (last, others)
}

fn whole() -> BTreeMap<String, Vec<u8>> {
    let data = tempfile::tempdir().unwrap();
    captured(data.path());
    release(data.path(), "Alice", &mut |_| Ok(())).unwrap();
    published(data.path()).0
}

fn steps() -> Vec<&'static str> {
    let data = tempfile::tempdir().unwrap();
    captured(data.path());
    let mut steps = Vec::new();
    release(data.path(), "Alice", &mut |step| {
        steps.push(step);
        Ok(())
    })
    .unwrap();
    steps
}

#[test]
fn q5_three_files_say_what_where_from_and_who_and_nothing_that_changes_or_is_secret() {
    let data = tempfile::tempdir().unwrap();
    captured(data.path());
    release(data.path(), "Alice", &mut |_| Ok(())).unwrap();
    let files = published(data.path()).0;
    let id = id().to_string();
    assert_eq!(
        files.keys().cloned().collect::<Vec<_>>(),
        [id.clone(), format!("{id}.approval.json"), format!("{id}.json")]
    );
    assert_eq!(files[&id], BYTES);
    let json = |name: &str| -> serde_json::Value { serde_json::from_slice(&files[name]).unwrap() };
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let provenance = json(&format!("{id}.json"));
    let mut wanted =
        ["sha256", "bytes", "url", "suggested_filename", "space_id", "workspace_id", "captured_at"];
    wanted.sort_unstable();
    let mut found = keys(&provenance);
    found.sort_unstable();
    assert_eq!(found, wanted);
    assert!(!provenance["url"].as_str().unwrap().contains("abcdefgh"));
    let approval = json(&format!("{id}.approval.json"));
    assert_eq!(keys(&approval).len(), 9);
    assert_eq!(
        (&approval["declared_operator"], &approval["authorized_principal"]),
        (&"Alice".into(), &"operator-1".into())
    );
    for name in files.keys() {
        let mode = fs::metadata(folder(data.path(), space()).join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn q5_the_provenance_is_the_same_whoever_releases() {
    let other = tempfile::tempdir().unwrap();
    captured(other.path());
    release(other.path(), "Bob", &mut |_| Ok(())).unwrap();
    let (alice, bob) = (whole(), published(other.path()).0);
    let name = format!("{}.json", id());
    assert_eq!(alice[&name], bob[&name]);
    assert_ne!(alice[&format!("{}.approval.json", id())], bob[&format!("{}.approval.json", id())]);
}

#[test]
fn q6_a_repeat_rewrites_nothing_and_a_conflict_overwrites_nothing() {
    let data = tempfile::tempdir().unwrap();
    captured(data.path());
    release(data.path(), "Alice", &mut |_| Ok(())).unwrap();
    let of = |name: &String| {
        let meta = fs::metadata(folder(data.path(), space()).join(name)).unwrap();
        (meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.ctime_nsec())
    };
    let files = published(data.path()).0;
    let before: Vec<_> = files.keys().map(of).collect();
    release(data.path(), "Alice", &mut |step| if step == "folder" { Ok(()) } else { panic!("{step}") })
        .unwrap();
    assert_eq!(before, files.keys().map(of).collect::<Vec<_>>());
    // Another approver, and other bytes under its name.
    assert!(matches!(release(data.path(), "Mallory", &mut |_| Ok(())), Err(PublishError::Conflict)));
    assert_eq!(published(data.path()).0, files);
    for name in files.keys() {
        let path = folder(data.path(), space()).join(name);
        fs::write(&path, b"mine").unwrap();
        assert!(matches!(release(data.path(), "Alice", &mut |_| Ok(())), Err(PublishError::Conflict)));
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        fs::remove_file(&path).unwrap();
        symlink("/etc/hostname", &path).unwrap();
        assert!(matches!(release(data.path(), "Alice", &mut |_| Ok(())), Err(PublishError::Conflict)));
        fs::remove_file(&path).unwrap();
        fs::write(&path, &files[name]).unwrap();
    }
}

#[test]
fn q3_bytes_that_are_not_those_of_the_receipt_are_never_published() {
    let data = tempfile::tempdir().unwrap();
    captured(data.path());
    let path = data.path().join("quarantine").join(space().to_string()).join(id().to_string());
    fs::write(&path, b"%PDF-1.7 a Report").unwrap();
    assert!(matches!(release(data.path(), "Alice", &mut |_| Ok(())), Err(PublishError::Tampered)));
    fs::remove_file(&path).unwrap();
    assert!(matches!(release(data.path(), "Alice", &mut |_| Ok(())), Err(PublishError::Gone)));
    symlink("/etc/hostname", &path).unwrap();
    assert!(matches!(release(data.path(), "Alice", &mut |_| Ok(())), Err(PublishError::Gone)));
    assert_eq!(published(data.path()), Default::default());
}

#[test]
fn q7_a_disk_that_fails_at_any_step_leaves_no_half_file_and_the_same_release_succeeds_later() {
    let (steps, whole) = (steps(), whole());
    for (failing, name) in steps.iter().enumerate() {
        let data = tempfile::tempdir().unwrap();
        captured(data.path());
        let mut at = 0;
        let failed = release(data.path(), "Alice", &mut |_| {
            at += 1;
            if at == failing + 1 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        });
        assert!(matches!(failed, Err(PublishError::Io(_))), "{failing} {name}");
        let (last, others) = published(data.path());
        assert_eq!(others, 0, "{failing} {name}");
        assert!(last.iter().all(|(name, bytes)| &whole[name] == bytes), "{failing} {name}");
        release(data.path(), "Alice", &mut |_| Ok(())).unwrap();
        assert_eq!(published(data.path()), (whole.clone(), 0));
    }
    println!("{} steps failed", steps.len());
}

/// Is no test by itself: it releases in the folder that a test names, and kills itself at the step that it names.
#[test]
fn a_child_that_is_killed_at_a_step() {
    let Ok(asked) = std::env::var(CHILD) else { return };
    let (last_step, data) = asked.split_once(':').unwrap();
    let (last_step, mut at) = (last_step.parse::<usize>().unwrap(), 0);
    let _ = release(Path::new(data), "Alice", &mut |_| {
        at += 1;
        if at == last_step {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
        Ok(())
    });
}

#[test]
fn q7_a_kill_at_any_step_leaves_no_half_file_and_the_same_release_succeeds_later() {
    let (steps, whole) = (steps(), whole());
    let [bytes, provenance, approval] =
        [String::new(), ".json".into(), ".approval.json".into()].map(|end: String| format!("{}{end}", id()));
    for killed in 1..=steps.len() {
        let data = tempfile::tempdir().unwrap();
        captured(data.path());
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "download::publish::tests::a_child_that_is_killed_at_a_step"])
            .env(CHILD, format!("{killed}:{}", data.path().display()))
            .output()
            .unwrap()
            .status;
        assert!(!status.success(), "it was killed at step {killed}");
        let (last, others) = published(data.path());
        assert!(others <= 1 && last.iter().all(|(name, bytes)| &whole[name] == bytes), "{killed}");
        // Bytes first, then where they are from, then who let them out.
        assert!(!last.contains_key(&provenance) || last.contains_key(&bytes), "{killed}");
        assert!(!last.contains_key(&approval) || last.contains_key(&provenance), "{killed}");
        release(data.path(), "Alice", &mut |_| Ok(())).unwrap();
        assert_eq!(published(data.path()), (whole.clone(), 0), "{killed} {}", steps[killed - 1]);
    }
    println!("{} kills", steps.len());
}
