//! `doctor`: checks what a server would meet here, and says what to do about what is wrong.

use std::{
    net::TcpListener,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::ExitCode,
};

use actors::runtime::chromium::habitable;
use anyhow::Result;
use projections::Store;

use super::{
    block_on,
    client::{Client, how_to_get_in},
    output::Output,
    print,
};
use crate::{
    config::{Config, ServeFlags},
    offline::{TokenState, token_state},
    server::{OPERATOR_TOKEN_FILE, missing_browser, operator_token},
};

pub(super) const HELP: &str = "\
Takes the flags of `serve`, so that it checks what that command line would meet. Changes nothing.
Each line says ok, warn or FAIL. The exit code is 1 if a line says FAIL.";

const SHARED_MEMORY_MIB_WANTED: u64 = 64;

/// What a check came to.
enum Finding {
    Ok(String),
    Warn(String, String),
    Fail(String, String),
}

use Finding::{Fail, Ok as Good, Warn};

/// Checks, prints, and fails if something would stop a server.
pub(super) fn doctor(flags: &ServeFlags) -> Result<ExitCode> {
    let config = Config::load(flags)?;
    // Where it can not be told, the log is read as that of a server that runs.
    let is_running = !matches!(block_on(Client::of_running(&config.data_dir)), Ok(None));
    let findings = [
        ("data folder", data_folder(&config.data_dir)),
        ("path to it", path_for_browsers(&config.data_dir)),
        ("disk space", disk_space(&config)),
        ("log", log(&config, is_running)),
        ("operator token", own_token(&config)),
        ("server", server(&config)),
        ("user", user(&config)),
        ("browser", browser(&config)),
        ("sandbox", sandbox(&config)),
        ("network wall", network_wall(&config)),
        ("shared memory", shared_memory()),
    ];
    let mut output = Output::new();
    let mut failed = false;
    for (name, finding) in findings {
        let (word, said, advice) = match finding {
            Good(said) => ("ok", said, String::new()),
            Warn(said, advice) => ("warn", said, advice),
            Fail(said, advice) => {
                failed = true;
                ("FAIL", said, advice)
            }
        };
        output.write(&format!("{word:<5} {name:<14} {}\n", print::escaped(&said)))?;
        if !advice.is_empty() {
            output.write(&format!("{:<20} {}\n", "", print::escaped(&advice)))?;
        }
    }
    output.flush()?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn data_folder(folder: &Path) -> Finding {
    if !folder.exists() {
        let parent = nearest_existing(folder);
        return if may_write(&parent) {
            Good(format!("{} is not there yet; the first start makes it", folder.display()))
        } else {
            Fail(
                format!("{} is not there, and {} is not writable", folder.display(), parent.display()),
                "make the folder, or name another one with --data-dir".to_owned(),
            )
        };
    }
    if !folder.is_dir() {
        return Fail(
            format!("{} is not a folder", folder.display()),
            "name another one with --data-dir".to_owned(),
        );
    }
    if may_write(folder) {
        Good(format!("{} is writable", folder.display()))
    } else {
        Fail(
            format!("{} is not writable for you", folder.display()),
            "run as its owner, or give it to you: chown".to_owned(),
        )
    }
}

/// Browsers need the way to their profiles, though not the right to look around.
fn path_for_browsers(folder: &Path) -> Finding {
    match habitable(folder) {
        Ok(()) if is_root() => Good("open for the users that browsers run as".to_owned()),
        Ok(()) => Good("browsers run as you".to_owned()),
        Err(problem) => Fail(problem.to_string(), problem.remedy()),
    }
}

fn disk_space(config: &Config) -> Finding {
    let folder = nearest_existing(&config.data_dir);
    let Some(free_mib) = free_mib(&folder) else {
        return Warn(format!("{} does not tell", folder.display()), "look with df".to_owned());
    };
    if free_mib < config.free_space_min_mib {
        return Fail(
            format!("{free_mib} MiB free, {} wanted", config.free_space_min_mib),
            "make room: below that the server refuses new work (free_space_min_mib)".to_owned(),
        );
    }
    Good(format!("{free_mib} MiB free, at least {} wanted", config.free_space_min_mib))
}

fn log(config: &Config, is_running: bool) -> Finding {
    let advice =
        || "do not delete anything; put the last good copy of the data folder in its place".to_owned();
    let verified = match crate::server::verify_log(&config.data_dir) {
        Ok(None) => return Good("none yet".to_owned()),
        Ok(Some(verified)) => verified,
        Err(error) => return Fail(format!("{error:#}"), advice()),
    };
    let events = verified.head;
    let torn = verified.torn_tail.map(|torn| format!("{} at byte {}", torn.file.display(), torn.offset));
    let seen = block_on(async { Ok(Store::reached_in(&config.views()).await?) });
    match seen {
        // What is being written looks torn, and the views may be told of it a moment later than we were.
        _ if is_running => Good(format!("{events} events, all readable")),
        Ok(Some(seen)) if seen > events => {
            let what = torn.map(|torn| format!(" in {torn}")).unwrap_or_default();
            Fail(format!("it ends at position {events}{what}, and the views have seen {seen}"), advice())
        }
        Ok(_) => match torn {
            None => Good(format!("{events} events, all readable")),
            Some(torn) => Warn(
                format!("{events} events; a crash left an unfinished batch in {torn}"),
                "nobody was told of it; the next start cuts it off and keeps it beside the segment"
                    .to_owned(),
            ),
        },
        Err(error) => Warn(
            format!("{events} events, all readable; the views do not tell what they have seen: {error:#}"),
            "browserspace rebuild makes them anew".to_owned(),
        ),
    }
}

/// The token that the other commands show to a running server.
fn own_token(config: &Config) -> Finding {
    let file = config.data_dir.join(OPERATOR_TOKEN_FILE);
    if !crate::offline::log_folder(&config.data_dir).is_dir() {
        return Good("none yet; the first start makes it".to_owned());
    }
    let Some(token) = operator_token(&config.data_dir) else {
        return Warn(format!("{} can not be read", file.display()), how_to_get_in(&config.data_dir));
    };
    let worth = match block_on(token_state(config, &token)) {
        Ok(TokenState::Valid) if is_open_to_others(&file) => {
            let advice = format!("chmod 600 {}; whoever has read it holds the server", file.display());
            return Warn(format!("{} can be read by others", file.display()), advice);
        }
        Ok(TokenState::Valid) => return Good(format!("{} is valid", file.display())),
        Ok(TokenState::Revoked) => "was revoked",
        Ok(TokenState::Expired) => "has expired",
        Ok(TokenState::Unknown) => "is not of this data folder",
        // The line about the log says why.
        Err(_) => return Warn("the log does not tell".to_owned(), String::new()),
    };
    let said = format!("the token in {} {worth}: no command can ask a running server", file.display());
    Warn(said, how_to_get_in(&config.data_dir))
}

fn is_open_to_others(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

fn server(config: &Config) -> Finding {
    let running = block_on(async {
        let Some(client) = Client::of_running(&config.data_dir).await? else { return Ok(None) };
        Ok(Some(client.is_draining().await))
    });
    match running {
        Ok(Some(true)) => Warn(
            "a server is running on this data folder and draining: it takes no new work".to_owned(),
            "SIGTERM or Ctrl-C ends it; then start it again".to_owned(),
        ),
        Ok(Some(false)) => Good("one is running on this data folder and takes work".to_owned()),
        Ok(None) => port(config),
        Err(error) => Warn(format!("it can not be told whether one is running: {error:#}"), String::new()),
    }
}

fn port(config: &Config) -> Finding {
    match TcpListener::bind(config.listen) {
        Ok(_) => Good(format!("none is running on this data folder; port {} is free", config.listen)),
        Err(error) => Fail(
            format!("port {}: {error}", config.listen),
            "end what listens there, or take another one with --listen (port 0 = any free one)".to_owned(),
        ),
    }
}

fn user(config: &Config) -> Finding {
    if is_root() {
        return Good(format!("root; browsers run as users {} and up", config.browser_uid_base));
    }
    let uid = rustix::process::getuid().as_raw();
    Warn(
        format!("user {uid}; all browsers run as this same user"),
        "as root the server gives each Space a user of its own, which keeps browsers apart more strictly"
            .to_owned(),
    )
}

fn browser(config: &Config) -> Finding {
    if let Some(named) = missing_browser(config) {
        return Fail(
            format!("{}, named as the Chromium program, is not there or is no program", named.display()),
            "correct --chromium (or the setting `chromium`), or leave it out to have one looked for"
                .to_owned(),
        );
    }
    let advice = || "install one: apt-get install chromium; or name it with --chromium PATH".to_owned();
    let program = match actors::runtime::find_executable(config.chromium.as_deref()) {
        Ok(program) => program,
        Err(error) => return Fail(format!("{error:#}"), advice()),
    };
    let version = std::process::Command::new(&program).arg("--version").output();
    match version {
        Ok(output) if output.status.success() => {
            Good(format!("{}  ({})", String::from_utf8_lossy(&output.stdout).trim(), program.display()))
        }
        Ok(output) => Fail(
            format!("{} does not run: {}", program.display(), String::from_utf8_lossy(&output.stderr).trim()),
            advice(),
        ),
        Err(error) => Fail(format!("{} does not start: {error}", program.display()), advice()),
    }
}

/// Chromium's sandbox needs user namespaces: user_namespaces(7).
fn sandbox(config: &Config) -> Finding {
    let setting = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let off = [
        ("/proc/sys/user/max_user_namespaces", 0, "sysctl user.max_user_namespaces=15000"),
        ("/proc/sys/kernel/unprivileged_userns_clone", 0, "sysctl kernel.unprivileged_userns_clone=1"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            1,
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for the browser",
        ),
    ]
    .into_iter()
    .find(|(path, bad, _)| setting(path) == Some(*bad));
    match off {
        None => Good("user namespaces are there; Chromium's sandbox is on".to_owned()),
        Some((path, _, _)) if config.allow_no_sandbox => Warn(
            format!("{path} turns user namespaces off; browsers run without a sandbox"),
            "only for pages you trust".to_owned(),
        ),
        Some((path, _, remedy)) => Fail(
            format!("{path} turns user namespaces off, and Chromium's sandbox needs them"),
            format!("{remedy}; or, for pages you trust, --allow-no-sandbox"),
        ),
    }
}

/// Tried, and not read off settings: root may lack the right in a container, and a user may have it.
fn network_wall(config: &Config) -> Finding {
    let user = is_root().then_some(config.browser_uid_base);
    match actors::runtime::try_seclusion(user.map(|id| (id, id))) {
        Ok(()) => Good("a browser's only way out is its proxy; the kernel sees to that".to_owned()),
        Err(error) if config.allow_no_network_namespace => Warn(
            format!(
                "no network namespace ({error}); browsers are asked to use their proxy, and nothing makes them"
            ),
            "a page that takes over its browser's own code is not held; only for pages you trust".to_owned(),
        ),
        Err(error) => Fail(
            format!("the kernel offers no network namespace ({error}), and a browser's wall needs one"),
            "run as root, or allow user namespaces; or, for pages you trust, --allow-no-network-namespace"
                .to_owned(),
        ),
    }
}

fn shared_memory() -> Finding {
    match rustix::fs::statvfs("/dev/shm").map(|found| found.f_blocks * found.f_frsize / 1_048_576) {
        Ok(mib) if mib >= SHARED_MEMORY_MIB_WANTED => Good(format!("/dev/shm has {mib} MiB")),
        Ok(mib) => Warn(
            format!("/dev/shm has {mib} MiB"),
            "pages may crash; in a container: --shm-size=1g".to_owned(),
        ),
        Err(_) => Warn("/dev/shm is not there".to_owned(), "pages may crash; mount a tmpfs there".to_owned()),
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn may_write(folder: &Path) -> bool {
    let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::accessat(rustix::fs::CWD, folder, wanted, rustix::fs::AtFlags::EACCESS).is_ok()
        && folder.metadata().is_ok_and(|found| found.nlink() > 0)
}

fn free_mib(folder: &Path) -> Option<u64> {
    rustix::fs::statvfs(folder).ok().map(|found| found.f_bavail * found.f_frsize / 1_048_576)
}

fn nearest_existing(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/")).to_owned()
}
