//! Tasks of a Space: submit (and wait), history, get.

use std::time::Duration;

use actors::spaces::{SubmitTask, Submitted};
use axum::{
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    response::{IntoResponse as _, Response},
};
use eventlog::{
    Json, Sensitive,
    id::{SpaceId, TaskId},
};

use super::{
    App,
    answer::{Answer, Page},
    asked::{Entered, Id},
    body::{RawBody, object, parsed, whole},
    prefer,
    reads::Wanted,
    spaces::{in_order, readable},
    wire,
};
use crate::problem::{Code, Problem};

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// `POST …/tasks`
pub(crate) async fn submit(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    headers: HeaderMap,
    body: RawBody,
) -> Result<Response, Problem> {
    let span = &entered.exchange.span;
    span.record("space.id", tracing::field::display(space));
    let (submit, wait) = match read(&entered, space, &headers, body) {
        Ok(read) => read,
        Err(problem) => return Err(in_order(&app, &entered, space, problem).await),
    };
    let submitted = app.spaces.submit(&entered.context(), submit).await?;
    span.record("task.id", tracing::field::display(submitted.task.task));
    let mut response = answer(&app, submitted, wait).await.into_response();
    if let Some(wait) = wait {
        let applied =
            HeaderValue::from_str(&format!("wait={}", wait.as_secs())).expect("digits are a header value");
        response.headers_mut().insert(PREFERENCE_APPLIED, applied);
    }
    Ok(response)
}

fn read(
    entered: &Entered,
    space: SpaceId,
    headers: &HeaderMap,
    body: RawBody,
) -> Result<(SubmitTask, Option<Duration>), Problem> {
    let mut fields = body.fields()?;
    let submit = SubmitTask {
        workspace: entered.workspace.clone(),
        space,
        request_id: fields.required("request_id", parsed)?,
        capability: fields.required("capability", parsed)?,
        args: Sensitive::new(Json::Object(fields.optional("args", object)?.unwrap_or_default())),
        timeout: Duration::from_secs(fields.optional("timeout_seconds", whole(1..=600))?.unwrap_or(60)),
    };
    fields.finish()?;
    Ok((submit, prefer::wait(headers)?))
}

/// 200 for a repeat or an end, 202 for a task that goes on.
async fn answer(app: &App, submitted: Submitted, wait: Option<Duration>) -> Answer<wire::Task> {
    let Submitted { task, repeated, ended, position } = submitted;
    let status = if repeated || task.status.is_terminal() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let asked_to_wait = wait.filter(|_| !task.status.is_terminal());
    let Some(wait) = asked_to_wait else { return Answer::with(status, (&task).into()).at(position) };
    match ended.within(wait).await {
        Some((task, position)) => Answer::ok((&task).into()).at(position),
        None => {
            // It goes on; the views may know more by now than the answer of the submit did.
            let now = app.views.task(task.task).await.ok().flatten();
            let body = now.as_ref().map_or_else(|| (&task).into(), wire::Task::from);
            Answer::with(status, body).at(position)
        }
    }
}

/// `GET …/tasks`
pub(crate) async fn list(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Page<wire::Task>, Problem> {
    readable(&app, &entered, space, &headers).await?;
    let wanted = Wanted::only(query.as_deref())?;
    let page = app.views.tasks(space, wanted.cursor(), wanted.limit).await?;
    Ok(page.into())
}

/// `GET …/tasks/{task_id}`
pub(crate) async fn get(
    State(app): State<App>,
    entered: Entered,
    Id(space): Id<SpaceId>,
    Id(task): Id<TaskId>,
    headers: HeaderMap,
) -> Result<Answer<wire::Task>, Problem> {
    entered.exchange.span.record("task.id", tracing::field::display(task));
    readable(&app, &entered, space, &headers).await?;
    let found = app.views.task(task).await?.filter(|row| row.space_id == space);
    found.map(|row| Answer::ok((&row).into())).ok_or_else(|| Problem::new(Code::TaskNotFound))
}
