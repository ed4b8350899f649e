//! Lists: filters, pages, cursors.

use eventlog::id::{InstanceId, SpaceId, TaskId, WorkspaceId};

use crate::{Page, SpaceFilter, SpaceStatus, ViewError, Views, testing::*};

async fn spaces(views: &Views, filter: &SpaceFilter) -> Vec<SpaceId> {
    let page = views.spaces(filter, None, 100).await.expect("it is read");
    page.items.into_iter().map(|row| row.space_id).collect()
}

async fn instances(views: &Views, workspaces: Option<&[WorkspaceId]>) -> Vec<InstanceId> {
    let page = views.instances(workspaces, None, 100).await.expect("it is read");
    page.items.into_iter().map(|row| row.browser_instance_id).collect()
}

#[track_caller]
fn assert_invalid<T: std::fmt::Debug>(page: &Result<Page<T>, ViewError>) {
    assert!(matches!(page, Err(ViewError::InvalidCursor(_))), "{page:?}");
}

async fn spaces_are_listed_by_workspace_owner_and_status(on: Engine) {
    let (_world, views) = given(
        on,
        [
            opened_by(1, "a", "ann"),
            opened_by(2, "a", "bob"),
            opened_by(3, "b", "ann"),
            opened_by(4, "c", "ann"),
            queued(2, 1),
            closed(3),
        ],
    )
    .await;
    let all = SpaceFilter::default();
    assert_eq!(spaces(&views, &all).await, [4, 3, 2, 1].map(space));
    let of_a_and_b = SpaceFilter { workspaces: Some(vec![workspace("a"), workspace("b")]), ..all.clone() };
    assert_eq!(spaces(&views, &of_a_and_b).await, [3, 2, 1].map(space));
    let of_ann = SpaceFilter { owner: Some(owner("ann")), ..of_a_and_b.clone() };
    assert_eq!(spaces(&views, &of_ann).await, [3, 1].map(space));
    let running = SpaceFilter { status: Some(SpaceStatus::Running), ..of_a_and_b };
    assert_eq!(spaces(&views, &running).await, [space(2)]);
    let of_none = SpaceFilter { workspaces: Some(Vec::new()), ..all };
    assert_eq!(spaces(&views, &of_none).await, []);
}

async fn an_instance_is_listed_for_those_who_may_reserve_it(on: Engine) {
    let mut world = World::new(on).await;
    world
        .happen([registered(1, &["a", "a"]), registered(2, &["b"]), registered(3, &[]), granted(1, "a", 3)])
        .await;
    world.catch_up().await.expect("the facts fit");
    let views = world.store.views();
    assert_eq!(instances(&views, None).await, [3, 2, 1].map(instance));
    assert_eq!(instances(&views, Some(&[workspace("a")])).await, [3, 1].map(instance));
    assert_eq!(instances(&views, Some(&[workspace("a"), workspace("b")])).await, [3, 2, 1].map(instance));
    assert_eq!(instances(&views, Some(&[])).await, []);
    let revoked = eventlog::WorkspaceEvent::BindingRevoked { binding: binding(1) };
    world.happen([of_workspace("a", revoked)]).await;
    world.catch_up().await.expect("the facts fit");
    assert_eq!(instances(&views, Some(&[workspace("a")])).await, [instance(1)]);
}

async fn pages_show_every_item_once_also_while_new_ones_come(on: Engine) {
    let mut world = World::new(on).await;
    world.happen([opened(1), opened(2)]).await;
    for n in 1..=5 {
        world.happen([queued(1, n), completed(1, n, &[])]).await;
    }
    world.catch_up().await.expect("the facts fit");
    let views = world.store.views();
    let mut seen: Vec<TaskId> = Vec::new();
    let mut cursor = None;
    let mut newer = 100;
    loop {
        let page = views.tasks(space(1), cursor.as_deref(), 2).await.expect("it is read");
        assert!(page.items.len() <= 2);
        seen.extend(page.items.iter().map(|row| row.task_id));
        newer += 1;
        world.happen([queued(1, newer), completed(1, newer, &[])]).await;
        world.catch_up().await.expect("the facts fit");
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, [5, 4, 3, 2, 1].map(task));
}

async fn artifacts_are_listed_in_their_order_and_found_by_their_id(on: Engine) {
    let (_world, views) =
        given(on, [opened(1), queued(1, 1), completed(1, 1, &[1, 2]), queued(1, 2), completed(1, 2, &[3])])
            .await;
    let first = views.artifacts(space(1), None, 2).await.expect("it is read");
    let rest = views.artifacts(space(1), first.next.as_deref(), 2).await.expect("it is read");
    let listed: Vec<_> = first.items.iter().chain(&rest.items).map(|row| row.artifact_id).collect();
    assert_eq!(listed, [3, 2, 1].map(artifact));
    assert_eq!(rest.next, None);
    let row = views.artifact(artifact(2)).await.expect("it is read").expect("it is there");
    assert_eq!((row.task_id, row.bytes, row.created_at), (task(1), 7, at(3)));
}

async fn a_cursor_of_another_list_or_from_beyond_the_head_is_refused(on: Engine) {
    let (_world, views) =
        given(on, [opened(1), opened(2), queued(1, 1), failed(1, 1, "x"), queued(1, 2)]).await;
    let tasks = views.tasks(space(1), None, 1).await.expect("it is read").next.expect("there is more");
    assert!(views.tasks(space(1), Some(&tasks), 1).await.is_ok());
    assert_invalid(&views.tasks(space(2), Some(&tasks), 1).await);
    assert_invalid(&views.artifacts(space(1), Some(&tasks), 1).await);
    assert_invalid(&views.spaces(&SpaceFilter::default(), Some(&tasks), 1).await);
    for malformed in ["", "-1", "5", "🙂"] {
        assert_invalid(&views.tasks(space(1), Some(malformed), 1).await);
    }

    let all = SpaceFilter::default();
    let spaces = views.spaces(&all, None, 1).await.expect("it is read").next.expect("there is more");
    let idle = SpaceFilter { status: Some(SpaceStatus::Idle), ..all };
    assert_invalid(&views.spaces(&idle, Some(&spaces), 1).await);

    let (_elsewhere, shorter) = given(on, [opened(1)]).await;
    assert_invalid(&shorter.tasks(space(1), Some(&tasks), 1).await);
}

on_both! {
    spaces_are_listed_by_workspace_owner_and_status,
    an_instance_is_listed_for_those_who_may_reserve_it,
    pages_show_every_item_once_also_while_new_ones_come,
    artifacts_are_listed_in_their_order_and_found_by_their_id,
    a_cursor_of_another_list_or_from_beyond_the_head_is_refused,
}
