//! `token create|list|revoke`: over HTTP while a server runs on the folder, else on the folder itself.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use eventlog::{
    Role, Timestamp,
    id::{OwnerId, TokenId, WorkspaceId},
};
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{
    block_on,
    client::{Client, how_to_get_in},
    output, print,
};
use crate::{
    config::{Config, FolderFlags},
    offline::{Offline, TokenState, read_tokens, token_state},
    server::operator_token,
};

pub(super) const HELP: &str = "\
While a server runs on the data folder it is asked, as its operator, with the token in DIR/operator.token; otherwise
the folder itself is changed. A list begins with the newest.

Is that token lost or revoked? Whoever may write the folder gets in again, with the server stopped:
  (umask 077; browserspace token create --role operator --all-workspaces --owner-id operator > DIR/operator.token)

Examples:
  browserspace token create --role agent --workspace default --owner-id my-agent
  browserspace token create --role auditor --workspace default --owner-id eve --expires-in-hours 8
  browserspace token list --workspace default
  browserspace token revoke --workspace default tok_01jdz…";

/// What `token` is asked.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    folder: FolderFlags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a token; prints it once, alone on the standard output
    Create(Create),
    /// List the tokens of a Workspace; never their text
    List(List),
    /// End a token at once; repeating it is fine
    Revoke(Revoke),
}

#[derive(Debug, Args)]
struct Create {
    /// What its bearer may do
    #[arg(long, value_enum)]
    role: RoleFlag,
    /// For which Workspace; made if it is not there
    #[arg(long, default_value = "default")]
    workspace: WorkspaceId,
    /// Who its bearer is: an opaque id of your choice
    #[arg(long)]
    owner_id: OwnerId,
    /// May it enter every Workspace?
    #[arg(long)]
    all_workspaces: bool,
    /// It ends by itself after so many hours [default: never]
    #[arg(long, value_name = "HOURS", value_parser = clap::value_parser!(u32).range(1..=87_600))]
    expires_in_hours: Option<u32>,
}

#[derive(Debug, Args)]
struct List {
    /// Of which Workspace
    #[arg(long, default_value = "default")]
    workspace: WorkspaceId,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Revoke {
    /// Of which Workspace
    #[arg(long, default_value = "default")]
    workspace: WorkspaceId,
    /// Which: its id (tok_…, see `token list`), not its text
    token: TokenId,
}

/// Roles as they are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RoleFlag {
    /// Sends commands on Spaces that it owns
    #[value(alias = "runtime_agent")]
    Agent,
    /// Runs the server, and any Space of its Workspaces
    Operator,
    /// Reads everything of its Workspaces and changes nothing
    Auditor,
}

impl From<RoleFlag> for Role {
    fn from(role: RoleFlag) -> Self {
        match role {
            RoleFlag::Agent => Self::RuntimeAgent,
            RoleFlag::Operator => Self::Operator,
            RoleFlag::Auditor => Self::Auditor,
        }
    }
}

/// Makes, lists or revokes.
pub(super) fn token(options: &Options) -> Result<ExitCode> {
    let config = Config::load_for(&options.folder)?;
    block_on(async {
        let running = Client::of_running(&config.data_dir).await?;
        match (&options.command, running) {
            (Command::Create(create), Some(client)) => create_running(&client, create).await,
            (Command::Create(create), None) => create_offline(&config, create).await,
            (Command::List(list), Some(client)) => list_running(&client, list).await,
            (Command::List(list), None) => {
                print_tokens(&read_tokens(&config, &list.workspace).await?, list.json)
            }
            (Command::Revoke(revoke), Some(client)) => revoke_running(&config, &client, revoke).await,
            (Command::Revoke(revoke), None) => revoke_offline(&config, revoke).await,
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn create_running(client: &Client, create: &Create) -> Result<()> {
    let expires_at = expires_at(create)?;
    let body = json!({
        "role": Role::from(create.role),
        "owner_id": create.owner_id,
        "all_workspaces": create.all_workspaces,
        "expires_at": expires_at.map(Timestamp::to_rfc3339),
    });
    let made = client.post(&format!("/workspaces/{}/tokens", create.workspace), &body).await?;
    let data = &made["data"];
    let token = data["token"].as_str().context("the server gave no token")?;
    print_token(token, data["token_id"].as_str().unwrap_or("?"))
}

async fn create_offline(config: &Config, create: &Create) -> Result<()> {
    let expires_at = expires_at(create)?;
    let offline = Offline::open(config).await?;
    let outcome = offline
        .issue_token(
            &create.workspace,
            create.role.into(),
            &create.owner_id,
            create.all_workspaces,
            expires_at,
        )
        .await;
    offline.close().await;
    let (id, token) = outcome?;
    print_token(token.expose(), &id.to_string())
}

async fn list_running(client: &Client, list: &List) -> Result<()> {
    let mut tokens = Vec::new();
    let path = format!("/workspaces/{}/tokens", list.workspace);
    let mut next = path.clone();
    loop {
        let page = client.get(&next).await?;
        tokens.extend(page["data"].as_array().cloned().unwrap_or_default());
        match page["next"].as_str() {
            Some(cursor) => next = format!("{path}?cursor={cursor}"),
            None => break,
        }
    }
    print_tokens(&tokens, list.json)
}

async fn revoke_running(config: &Config, client: &Client, revoke: &Revoke) -> Result<()> {
    client
        .post(&format!("/workspaces/{}/tokens/{}/revoke", revoke.workspace, revoke.token), &json!({}))
        .await?;
    output::line(&format!("{} is revoked", revoke.token))?;
    // We have just been let in with it, so if it opens nothing now, it was the one.
    if !client.takes_our_token().await? {
        warn_locked_out(config);
    }
    Ok(())
}

async fn revoke_offline(config: &Config, revoke: &Revoke) -> Result<()> {
    let offline = Offline::open(config).await?;
    let outcome = offline.revoke_token(&revoke.workspace, revoke.token).await;
    offline.close().await;
    outcome?;
    output::line(&format!("{} is revoked", revoke.token))?;
    let Some(own) = operator_token(&config.data_dir) else { return Ok(()) };
    if token_state(config, &own).await? == TokenState::Revoked {
        warn_locked_out(config);
    }
    Ok(())
}

fn warn_locked_out(config: &Config) {
    super::say(&format!(
        "browserspace: the token in operator.token opens nothing any more, so no command can ask the running server. \
         To get in again: {}\n",
        how_to_get_in(&config.data_dir)
    ));
}

/// The token alone on the standard output, so that a script can take it; what it is, beside it.
fn print_token(token: &str, id: &str) -> Result<()> {
    output::line(token)?;
    super::say(&format!("{id}: keep this token now; it is shown this once and kept nowhere\n"));
    Ok(())
}

fn print_tokens(tokens: &[Value], json: bool) -> Result<()> {
    if json {
        return output::write(&tokens.iter().map(|token| format!("{token}\n")).collect::<String>());
    }
    let header = ["TOKEN", "ROLE", "OWNER", "SCOPE", "CREATED", "EXPIRES", "STATE"];
    output::write(&print::table(&header, &tokens.iter().map(row).collect::<Vec<_>>()))
}

fn row(token: &Value) -> Vec<String> {
    let text = |key: &str| token[key].as_str().map_or_else(|| "–".to_owned(), print::escaped);
    let scope =
        if token["all_workspaces"] == true { "all Workspaces".to_owned() } else { text("workspace_id") };
    let state = if token["revoked"] == true || token["revoked_at"].is_string() { "revoked" } else { "valid" };
    let cells =
        [text("token_id"), text("role"), text("owner_id"), scope, text("created_at"), text("expires_at")];
    cells.into_iter().chain([state.to_owned()]).collect()
}

fn expires_at(create: &Create) -> Result<Option<Timestamp>> {
    let Some(hours) = create.expires_in_hours else {
        return Ok(None);
    };
    let end = OffsetDateTime::now_utc() + time::Duration::hours(i64::from(hours));
    match i64::try_from(end.unix_timestamp_nanos() / 1_000) {
        Ok(micros) => Ok(Some(Timestamp(micros))),
        Err(_) => bail!("{} is too far away", end.format(&Rfc3339)?),
    }
}
