//! given(events).view(): how events become rows.

use eventlog::{
    InstanceEvent, Role, Sequence, StreamId, WorkspaceEvent,
    event::{instance::LossReason, space::CloseReason},
    number::Generation,
};

use crate::{Health, SpaceStatus, TaskStatus, testing::*};

async fn a_space_is_running_while_its_task_is_queued_or_running_and_in_error_until_recovered(on: Engine) {
    use SpaceStatus::{Closed, Error, Idle, Running};
    let steps = [
        (opened(1), Idle, None, None),
        (queued(1, 1), Running, Some(1), None),
        (started(1, 1), Running, Some(1), None),
        (completed(1, 1, &[]), Idle, None, None),
        (refused(1, 2), Idle, None, None),
        (failed(1, 2, "capability_not_granted"), Idle, None, Some("capability_not_granted")),
        (queued(1, 3), Running, Some(3), Some("capability_not_granted")),
        (cancel_requested(1, 3), Running, Some(3), Some("capability_not_granted")),
        (refused(1, 4), Running, Some(3), Some("capability_not_granted")),
        (failed(1, 4, "runtime_not_ready"), Running, Some(3), Some("runtime_not_ready")),
        (cancelled(1, 3), Idle, None, Some("runtime_not_ready")),
        (queued(1, 5), Running, Some(5), Some("runtime_not_ready")),
        (faulted(1, "runtime_crashed"), Error, Some(5), Some("runtime_crashed")),
        (failed(1, 5, "runtime_crashed"), Error, None, Some("runtime_crashed")),
        (recovered(1), Idle, None, Some("runtime_crashed")),
        (close_requested(1), Idle, None, Some("runtime_crashed")),
        (closed(1), Closed, None, Some("runtime_crashed")),
    ];
    let mut world = World::new(on).await;
    for (fact, status, active, code) in steps {
        let position = world.happen([fact]).await;
        world.catch_up().await.expect("the fact fits");
        let row = world.store.views().space(space(1)).await.expect("it is read").expect("it is there");
        assert_eq!(row.status, status, "after position {position}");
        assert_eq!(row.active_task, active.map(task), "after position {position}");
        assert_eq!(row.last_error_code.as_deref(), code, "after position {position}");
        assert_eq!(row.revision, Sequence(position.0));
        assert_eq!((row.created_at, row.updated_at), (at(1), at(position.0)));
    }
}

async fn a_space_shows_who_has_what(on: Engine) {
    let (_world, views) = given(on, [opened_by(1, "team", "bob"), closed(1)]).await;
    let row = views.space(space(1)).await.expect("it is read").expect("it is there");
    assert_eq!(row.workspace_id, workspace("team"));
    assert_eq!(row.browser_instance_id, instance(1));
    assert_eq!((row.owner_type, row.owner_id), (owner("bob").kind, owner("bob").id));
    assert_eq!(row.granted_capabilities.len(), 1);
    assert_eq!(row.idle_timeout_seconds, 1800);
    assert_eq!(row.close_reason, Some(CloseReason::Requested));
    assert_eq!(views.space(space(2)).await.expect("it is read"), None);
}

async fn a_task_shows_its_way_and_its_end(on: Engine) {
    let (_world, views) = given(
        on,
        [
            opened(1),
            queued(1, 1),
            started(1, 1),
            completed(1, 1, &[]),
            queued(1, 2),
            failed(1, 2, "interrupted"),
            queued(1, 3),
            started(1, 3),
            cancel_requested(1, 3),
        ],
    )
    .await;
    let row = views.task(task(1)).await.expect("it is read").expect("it is there");
    assert_eq!((row.status, row.space_id), (TaskStatus::Completed, space(1)));
    assert_eq!(row.result, Some(redacted(serde_json::json!({ "title": "Shop" }))));
    assert_eq!((row.created_at, row.started_at, row.finished_at), (at(2), Some(at(3)), Some(at(4))));
    assert_eq!(row.arg_keys[0].get(), "ref");
    assert_eq!((row.cancel_requested, row.error), (false, None));

    let row = views.task(task(2)).await.expect("it is read").expect("it is there");
    assert_eq!((row.status, row.started_at, row.result), (TaskStatus::Failed, None, None));
    assert_eq!(row.error, Some(error("interrupted")));

    let row = views.task(task(3)).await.expect("it is read").expect("it is there");
    assert_eq!((row.status, row.cancel_requested, row.finished_at), (TaskStatus::Running, true, None));
}

async fn the_health_of_an_instance_follows_its_runtime(on: Engine) {
    use Health::{Ready, Retired, Starting, Unavailable};
    let generation = Generation(1);
    let lost = InstanceEvent::RuntimeLost { generation, reason: LossReason::Crashed };
    let circuit_opened = InstanceEvent::CircuitOpened { losses: 3, retry_after_ms: 1 };
    let steps = [
        (registered(1, &[]), Ready, false),
        (reserved(1), Ready, true),
        (of_instance(1, InstanceEvent::RuntimeStarting { space: space(1), generation }), Starting, true),
        (of_instance(1, InstanceEvent::RuntimeReady { generation }), Ready, true),
        (of_instance(1, lost.clone()), Starting, true),
        (of_instance(1, circuit_opened.clone()), Unavailable, true),
        (of_instance(1, InstanceEvent::RuntimeStarting { space: space(1), generation }), Unavailable, true),
        (of_instance(1, InstanceEvent::CircuitClosed {}), Ready, true),
        (of_instance(1, InstanceEvent::RuntimeStarting { space: space(1), generation }), Starting, true),
        (of_instance(1, InstanceEvent::RuntimeStopped { generation }), Ready, true),
        (released(1), Ready, false),
        (of_instance(1, InstanceEvent::Retired {}), Retired, false),
        (of_instance(1, circuit_opened), Retired, false),
        (of_instance(1, InstanceEvent::RuntimeReady { generation }), Retired, false),
    ];
    let mut world = World::new(on).await;
    for (fact, health, is_reserved) in steps {
        let position = world.happen([fact]).await;
        world.catch_up().await.expect("the fact fits");
        let row = world.store.views().instance(instance(1)).await.expect("it is read").expect("it is there");
        assert_eq!(
            (row.health, row.reserved_by),
            (health, is_reserved.then(|| space(1))),
            "after {position}"
        );
    }
    let row = world.store.views().instance(instance(1)).await.expect("it is read").expect("it is there");
    assert_eq!(row.name.expect("it has one").as_str(), "browser 1");
    assert_eq!(row.network_policy.allow, ["shop.example:443"]);
}

async fn bindings_and_tokens_show_their_end_and_never_a_hash(on: Engine) {
    let issued = WorkspaceEvent::TokenIssued {
        token: token(1),
        hash: [0xab; 32],
        role: Role::Auditor,
        owner_id: owner("eve").id,
        all_workspaces: true,
        expires_at: Some(at(99)),
    };
    let (world, views) = given(
        on,
        [
            of_workspace("team", WorkspaceEvent::Created {}),
            of_workspace("team", issued),
            granted(1, "team", 7),
            of_workspace("team", WorkspaceEvent::TokenRevoked { token: token(1) }),
            of_workspace("team", WorkspaceEvent::BindingRevoked { binding: binding(1) }),
        ],
    )
    .await;
    let row = views.token(token(1)).await.expect("it is read").expect("it is there");
    assert_eq!((row.role, row.all_workspaces), (Role::Auditor, true));
    assert_eq!((row.created_at, row.expires_at, row.revoked_at), (at(2), Some(at(99)), Some(at(4))));
    let row = views.binding(binding(1)).await.expect("it is read").expect("it is there");
    assert_eq!((row.browser_instance_id, row.revoked_at), (instance(7), Some(at(5))));
    assert_eq!((row.owner_id, row.capabilities.map(|names| names.len())), (None, Some(1)));
    let row = views.workspace(&workspace("team")).await.expect("it is read").expect("it is there");
    assert_eq!(row.created_at, at(1));

    let dump = format!("{:?}", world.dump().await).to_lowercase();
    assert!(!dump.contains("abab") && !dump.contains("171"), "{dump}");
}

async fn an_event_of_a_newer_program_moves_the_revision_and_nothing_else(on: Engine) {
    let unknown = eventlog::event::UnknownEvent {
        kind: "teleported".to_owned(),
        schema: 9,
        payload: vec![0x80].into(),
    };
    let (_world, views) =
        given(on, [opened(1), (StreamId::Space(space(1)), eventlog::Event::Unknown(unknown))]).await;
    let row = views.space(space(1)).await.expect("it is read").expect("it is there");
    assert_eq!((row.status, row.revision), (SpaceStatus::Idle, Sequence(2)));
}

on_both! {
    a_space_is_running_while_its_task_is_queued_or_running_and_in_error_until_recovered,
    a_space_shows_who_has_what,
    a_task_shows_its_way_and_its_end,
    the_health_of_an_instance_follows_its_runtime,
    bindings_and_tokens_show_their_end_and_never_a_hash,
    an_event_of_a_newer_program_moves_the_revision_and_nothing_else,
}
