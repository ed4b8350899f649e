//! Artifacts: found by their Space, given as attachments.

use eventlog::{
    Append, Event, ExpectedSequence, Metadata, Part, Principal, Redacted, Redactor, SpaceEvent, StreamId,
    event::space::ArtifactRecord,
    id::{ArtifactId, SpaceId, TaskId},
};

use super::*;

/// Records, as a runtime's outcome would, that the running task made this file; and puts the file where it belongs.
async fn made(server: &Server, space: SpaceId, task: TaskId, bytes: &[u8]) -> ArtifactId {
    let id: ArtifactId = "art_00000000000000000000000001".parse().expect("an id");
    let record = ArtifactRecord {
        id,
        kind: "screenshot".to_owned(),
        media_type: "image/png".to_owned(),
        bytes: bytes.len() as u64,
        sha256: "ab".repeat(32),
    };
    let folder = server.dir.path().join("artifacts").join(space.to_string());
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join(id.to_string()), bytes).expect("a file");
    let description = serde_json::to_vec(&record).expect("JSON");
    std::fs::write(folder.join(format!("{id}.json")), description).expect("a file");
    let result: Redacted<Value> = Redactor::new().json(json!({ "artifact": id }));
    let append = Append {
        id: "cmd_00000000000000000000000001".parse().expect("an id"),
        metadata: Metadata {
            principal: Principal::System,
            workspace: Some("team".parse().expect("a name")),
            recorded_at: eventlog::Timestamp(1),
            trace_id: eventlog::TraceId::default(),
            causation: None,
            boot: "boot_00000000000000000000000001".parse().expect("an id"),
        },
        parts: vec![Part {
            stream: StreamId::Space(space),
            expected: ExpectedSequence::Any,
            events: vec![Event::Space(SpaceEvent::TaskCompleted { task, result, artifacts: vec![record] })],
        }],
    };
    server.state.log.append(append).await.expect("it is appended");
    id
}

#[tokio::test]
async fn c12_an_artifact_is_an_attachment_of_its_space_and_of_no_other() {
    let server = Server::start().await;
    let (agent, space) = server.agent_with_space().await;
    let elsewhere = server.space(&agent, "agent-a").await;
    let hang = navigate("r-1", "outcome=hang");
    let task = server.post(&agent, &format!("{space}/tasks"), hang).await.expect(StatusCode::ACCEPTED);
    let parse = |text: &str| text.rsplit('/').next().expect("a path").to_owned();
    let space_id = parse(&space).parse().expect("an id");
    let task_id = task["task_id"].as_str().expect("an id").parse().expect("an id");
    let id = made(&server, space_id, task_id, b"<script>not really a picture").await;

    let list = server.get(&agent, &format!("{space}/artifacts")).await.expect(StatusCode::OK);
    assert_eq!(list[0]["artifact_id"], json!(id.to_string()));
    assert_eq!((&list[0]["media_type"], &list[0]["task_id"]), (&json!("image/png"), &task["task_id"]));
    let path = format!("{space}/artifacts/{id}");
    let file = server.get(&agent, &path).await;
    assert_eq!((file.status, file.text.as_str()), (StatusCode::OK, "<script>not really a picture"));
    let expected = format!("attachment; filename=\"{id}.png\"");
    assert_eq!(file.header("content-disposition"), Some(expected.as_str()));
    assert_eq!(file.header("content-type"), Some("image/png"));
    assert_eq!(file.header("content-length"), Some("28"));
    assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(file.header("content-security-policy"), Some("sandbox; default-src 'none'"));
    server.get(&agent, &format!("{elsewhere}/artifacts/{id}")).await.refused(404, "artifact_not_found");

    std::fs::remove_dir_all(server.dir.path().join("artifacts")).expect("it was there");
    server.get(&agent, &path).await.refused(404, "artifact_not_found");
}
