//! What an operator may set: file < environment < flags, each value checked, unknown names refused.
//!
//! The file is TOML: the one named by `--config` or `BROWSERSPACE_CONFIG`, else `browserspace.toml` in the data folder
//! if it is there. A variable is `BROWSERSPACE_` and the name of the field in capitals (`BROWSERSPACE_DATA_DIR`), a
//! field of a section has two underscores (`BROWSERSPACE_HTTP__RATE_PER_SECOND`).

mod explain;
#[cfg(test)]
mod tests;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum};
use figment::{
    Figment,
    providers::{Env, Format, Serialized, Toml},
};
use projections::Place;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    checkpoints::CheckpointsConfig,
    limits::{HttpConfig, HttpConfigError},
    offline::views_file,
};

/// What every variable of ours begins with.
pub const VARIABLE_PREFIX: &str = "BROWSERSPACE_";
/// The file that is read from the data folder where no other is named.
pub const FILE_NAME: &str = "browserspace.toml";
/// Variables of ours that are not fields: they say where the file is, or belong to the project's own tests and tools.
const OTHER_VARIABLES: [&str; 4] = ["config", "bin", "profile", "rewrite_generated"];
const OTHER_VARIABLES_PREFIX: &str = "test_";

/// What an address to listen on looks like.
const LISTEN_WANTED: &str = "an IP address and a port, as in 127.0.0.1:7878";

/// What an operator may set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The folder that holds everything the server keeps. Default `browserspace-data`; made with mode 0700.
    pub data_dir: PathBuf,
    /// Address and port to listen on. Default `127.0.0.1:7878`; port 0 takes any free one. Anything but loopback needs
    /// `tls_terminated`.
    pub listen: SocketAddr,
    /// Declares that something in front ends TLS, so that tokens do not cross the network in the clear. Default false.
    pub tls_terminated: bool,
    /// Chromium instances registered at the first start on an empty data folder. Default 1, range 0–64.
    pub instances: u16,
    /// The Chromium program. Default: looked for in the usual places.
    pub chromium: Option<PathBuf>,
    /// The first unprivileged user id that browsers run under, one per Space from there on, where the server is root.
    /// Default 40000, range 1000–4000000000.
    pub browser_uid_base: u32,
    /// Allows instances with the `trusted` bundle, which can evaluate JavaScript. Default false.
    pub allow_trusted_bundle: bool,
    /// Allows instances of kind `scripted`, which play a script and have no browser. For tests. Default false.
    pub allow_scripted_runtime: bool,
    /// Allows browsers without Chromium's own sandbox, where the kernel offers no user namespaces. Default false.
    pub allow_no_sandbox: bool,
    /// Allows browsers without a network namespace of their own, where the kernel offers none. Default false.
    pub allow_no_network_namespace: bool,
    /// Seconds after its last use until a Space is closed, where the create names none. Default 1800, range 10–86400.
    pub idle_timeout_seconds: u64,
    /// Files that the pages of one Space may download over its life. Default 1000, range 1–100000.
    pub download_space_files_max: u64,
    /// MiB that the pages of one Space may download over its life. Default 512, range 1–1048576.
    pub download_space_mib_max: u64,
    /// MiB that the pages of one Workspace's Spaces may download in a day (UTC). Default 4096, range 1–1048576.
    pub download_workspace_day_mib_max: u64,
    /// Seconds without a byte after which a download is ended. Default 30, range 1–3600.
    pub download_stall_seconds: u64,
    /// Hours that a captured download waits for its release before it is deleted. Default 168, range 1–8760.
    pub download_quarantine_hours: u64,
    /// Seconds that running tasks get to finish when the server stops. Default 30, range 0–600.
    pub drain_seconds: u64,
    /// MiB that must stay free on the disk of the log; below that new work is refused. Default 256, range 0–1048576.
    pub free_space_min_mib: u64,
    /// How log lines look: `pretty` for people, `json` for machines. Default `pretty`.
    pub log_format: LogFormat,
    /// Which log lines are written, as in `info,actors=debug`. Default `info`.
    pub log_filter: String,
    /// Where traces go: the base URL of an OTLP collector (http/protobuf). Default: nowhere.
    pub otlp_endpoint: Option<Url>,
    /// The PostgreSQL that the views lie in: `postgres://user@host/database`, with `schema=` where it is not
    /// `browserspace`. Default: the file `views.sqlite` in the data folder.
    pub views_url: Option<Url>,
    /// The bounds of the HTTP surface: section `[http]`.
    pub http: HttpConfig,
    /// Signed checkpoints of the log: section `[checkpoints]`.
    pub checkpoints: CheckpointsConfig,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object a line.
    Json,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("browserspace-data"),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7878)),
            tls_terminated: false,
            instances: 1,
            chromium: None,
            browser_uid_base: 40_000,
            allow_trusted_bundle: false,
            allow_scripted_runtime: false,
            allow_no_sandbox: false,
            allow_no_network_namespace: false,
            idle_timeout_seconds: 1_800,
            download_space_files_max: 1_000,
            download_space_mib_max: 512,
            download_workspace_day_mib_max: 4_096,
            download_stall_seconds: 30,
            download_quarantine_hours: 168,
            drain_seconds: 30,
            free_space_min_mib: 256,
            log_format: LogFormat::Pretty,
            log_filter: "info".to_owned(),
            otlp_endpoint: None,
            views_url: None,
            http: HttpConfig::default(),
            checkpoints: CheckpointsConfig::default(),
        }
    }
}

/// Flags that every command takes which reads a data folder.
#[derive(Debug, Clone, Default, Args, Serialize)]
pub struct FolderFlags {
    /// The configuration file; otherwise DIR/browserspace.toml, if it is there
    #[arg(long, global = true, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// The folder that holds everything the server keeps [default: browserspace-data]
    #[arg(long, global = true, value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<PathBuf>,
}

/// Flags of `serve`, and of `doctor`, which checks what `serve` would meet.
#[derive(Debug, Clone, Default, Args, Serialize)]
pub struct ServeFlags {
    #[command(flatten)]
    #[serde(flatten)]
    #[allow(missing_docs, reason = "clap would print it above every help text")]
    pub folder: FolderFlags,
    /// Address and port to listen on; port 0 takes any free one [default: 127.0.0.1:7878]
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Declare that something in front ends TLS; needed to listen on anything but loopback
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_terminated: Option<bool>,
    /// Chromium instances to register at the first start on an empty data folder [default: 1]
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instances: Option<u16>,
    /// The Chromium program [default: looked for in the usual places]
    #[arg(long, value_name = "PATH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chromium: Option<PathBuf>,
    /// Allow instances whose bundle can evaluate JavaScript
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_trusted_bundle: Option<bool>,
    /// Allow instances that play a script instead of a browser (for tests)
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_scripted_runtime: Option<bool>,
    /// Allow browsers without Chromium's sandbox, where the kernel offers no user namespaces
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_no_sandbox: Option<bool>,
    /// Allow browsers that only their command line keeps to their proxy, where the kernel offers no namespaces
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_no_network_namespace: Option<bool>,
    /// Seconds that running tasks get to finish when the server stops [default: 30]
    #[arg(long, value_name = "SECONDS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_seconds: Option<u64>,
    /// How log lines look [default: pretty]
    #[arg(long, value_enum, value_name = "FORMAT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_format: Option<LogFormat>,
    /// Which log lines are written, as in info,actors=debug [default: info]
    #[arg(long, value_name = "FILTER")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_filter: Option<String>,
    /// Send traces to this OTLP collector (http/protobuf), as in http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<Url>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that was named can not be read.
    #[error("the configuration file {path} can not be read")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is no TOML, a value has the wrong type, or a name is unknown.
    #[error("the configuration is not valid: {0}")]
    Shape(String),
    /// A value is out of its range.
    #[error("{field}: {problem}")]
    Value {
        /// Which field.
        field: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// A value of the section `[checkpoints]` is out of its range.
    #[error("checkpoints.{field}: {problem}")]
    Checkpoints {
        /// Which field.
        field: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A value of the section `[http]` is out of its range.
    #[error(transparent)]
    Http(#[from] HttpConfigError),
    /// C3: it would be open to the network without protection.
    #[error(
        "listening on {0} would send tokens over the network in the clear: put something in front that ends TLS and \
         declare it with --tls-terminated, or listen on 127.0.0.1"
    )]
    OpenBind(SocketAddr),
}

impl Config {
    /// Reads and checks it: defaults < file < environment < flags.
    ///
    /// # Errors
    /// [`ConfigError`]: nothing starts with a configuration that is not understood in full.
    pub fn load(flags: &ServeFlags) -> Result<Self, ConfigError> {
        let environment = Env::prefixed(VARIABLE_PREFIX).filter(|name| !is_other(name.as_str())).split("__");
        let layers = Figment::from(Serialized::defaults(Self::default()));
        let above = Figment::from(environment).merge(Serialized::defaults(flags));
        let file = flags.folder.config.clone().or_else(named_file);
        let file = file.or_else(|| default_file(&layers.clone().merge(above.clone())));
        let layers = match &file {
            Some(path) => layers.merge(Toml::string(&text_of(path)?)),
            None => layers,
        };
        let mut config: Self = layers
            .merge(above)
            .extract()
            .map_err(|error| ConfigError::Shape(explain::no_configuration(error, file.as_deref())))?;
        // Declared once, for the server as a whole.
        config.http.tls_terminated = config.tls_terminated;
        config.check()?;
        Ok(config)
    }

    /// For the commands that only need to know where the data folder is.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_for(folder: &FolderFlags) -> Result<Self, ConfigError> {
        Self::load(&ServeFlags { folder: folder.clone(), ..ServeFlags::default() })
    }

    /// Where the views lie.
    ///
    /// # Panics
    /// Never, of a configuration that was checked.
    #[must_use]
    pub fn views(&self) -> Place {
        match &self.views_url {
            None => Place::Sqlite(views_file(&self.data_dir)),
            Some(url) => Place::postgres(url).expect("`check` has read it"),
        }
    }

    /// How long running tasks get when the server stops.
    #[must_use]
    pub const fn drain_time(&self) -> Duration {
        Duration::from_secs(self.drain_seconds)
    }

    /// What of it concerns the actors.
    #[must_use]
    pub fn actors(&self) -> actors::Config {
        let chromium = actors::config::ChromiumConfig {
            executable: self.chromium.clone(),
            uid_first: self.browser_uid_base,
            allow_no_sandbox: self.allow_no_sandbox,
            allow_no_network_namespace: self.allow_no_network_namespace,
            allow_trusted: self.allow_trusted_bundle,
            ..Default::default()
        };
        let downloads = actors::config::DownloadsConfig {
            space_files_max: self.download_space_files_max,
            space_bytes_max: self.download_space_mib_max << 20,
            workspace_day_bytes_max: self.download_workspace_day_mib_max << 20,
            stall: Duration::from_secs(self.download_stall_seconds),
            quarantine_age: Duration::from_secs(self.download_quarantine_hours * 3_600),
        };
        actors::Config {
            downloads,
            idle_timeout: Duration::from_secs(self.idle_timeout_seconds),
            allow_trusted_bundle: self.allow_trusted_bundle,
            allow_scripted_runtime: self.allow_scripted_runtime,
            chromium,
            ..Default::default()
        }
    }

    /// As it may be printed: one line of JSON, without what is secret.
    #[must_use]
    pub fn printable(&self) -> String {
        let mut shown = self.clone();
        let urls = [&mut shown.otlp_endpoint, &mut shown.views_url, &mut shown.checkpoints.url];
        for url in urls.into_iter().flatten() {
            // Such places take keys in the user part and in the query. A URL without a host refuses both, and has none.
            if !url.username().is_empty() || url.password().is_some() {
                let _ = url.set_username("masked");
                let _ = url.set_password(None);
            }
            if url.query().is_some() {
                url.set_query(Some("masked"));
            }
        }
        serde_json::to_string(&shown).expect("a configuration has only plain fields")
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.http.validate()?;
        if let Some((field, problem)) = self.checkpoints.problem() {
            return Err(ConfigError::Checkpoints { field, problem });
        }
        let numbers = [
            u64::from(self.instances),
            self.drain_seconds,
            self.idle_timeout_seconds,
            self.free_space_min_mib,
            u64::from(self.browser_uid_base),
            self.download_space_files_max,
            self.download_space_mib_max,
            self.download_workspace_day_mib_max,
            self.download_stall_seconds,
            self.download_quarantine_hours,
        ];
        for ((field, range), given) in explain::RANGES.into_iter().zip(numbers) {
            if !range.contains(&given) {
                let problem = format!("{given} is not between {} and {}", range.start(), range.end());
                return Err(value(field, problem));
            }
        }
        if self.data_dir.as_os_str().is_empty() {
            return Err(value("data_dir", "names no folder"));
        }
        if self.chromium.as_ref().is_some_and(|path| !path.is_absolute()) {
            return Err(value("chromium", "must be an absolute path"));
        }
        if self.otlp_endpoint.as_ref().is_some_and(|url| !matches!(url.scheme(), "http" | "https")) {
            return Err(value("otlp_endpoint", "must begin with http:// or https://"));
        }
        if let Some(Err(problem)) = self.views_url.as_ref().map(Place::postgres) {
            return Err(value("views_url", problem.to_string()));
        }
        if self.log_filter.parse::<tracing_subscriber::filter::Targets>().is_err() {
            return Err(value("log_filter", "must look like info or info,actors=debug"));
        }
        if !self.listen.ip().is_loopback() && !self.tls_terminated {
            return Err(ConfigError::OpenBind(self.listen));
        }
        Ok(())
    }
}

fn is_other(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    OTHER_VARIABLES.contains(&name.as_str()) || name.starts_with(OTHER_VARIABLES_PREFIX)
}

fn named_file() -> Option<PathBuf> {
    std::env::var_os("BROWSERSPACE_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// What a configuration file says; that it is TOML is found out here, where the line is still known.
fn text_of(path: &Path) -> Result<String, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::File { path: path.to_owned(), source })?;
    match toml::from_str::<toml::Table>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(ConfigError::Shape(explain::no_toml(path, &text, &error))),
    }
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("wanted {LISTEN_WANTED}"))
}

fn default_file(figment: &Figment) -> Option<PathBuf> {
    let folder: PathBuf = figment.extract_inner("data_dir").ok()?;
    Some(folder.join(FILE_NAME)).filter(|path: &PathBuf| Path::exists(path))
}

fn value(field: &'static str, problem: impl Into<String>) -> ConfigError {
    ConfigError::Value { field, problem: problem.into() }
}
