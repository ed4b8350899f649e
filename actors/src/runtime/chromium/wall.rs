//! The wall around one browser: its only way out is a proxy of ours, which keeps to the instance's network policy.
//!
//! Where the kernel lets us, the browser is in a network namespace in which that proxy is all there is. Where it does not,
//! the browser is only asked to use the proxy: an operator has to allow that in so many words.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Weak},
    time::Instant,
};

use browser::{Browser, Gate, LaunchError, LaunchSpec, Network, Refusal};
use egress::{Door, Limits, Meter, Policy, Proxy, Report, Resolver, Why};
use eventlog::{event::instance::NetworkPolicy, id::SpaceId};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tracing::warn;
use url::Url;

use crate::instance::policy::INLINE_SCHEMES;

/// So many Spaces are remembered for their bytes; then those without a browser are forgotten.
const METERS_MAX: usize = 10_000;

/// Whom Chromium calls by itself, whatever its command line says: updates of its parts, trials, push messages, lists.
const BACKGROUND: [&str; 14] = [
    "update.googleapis.com",
    "clients1.google.com",
    "clients2.google.com",
    "clients4.google.com",
    "clients2.googleusercontent.com",
    "clientservices.googleapis.com",
    "optimizationguide-pa.googleapis.com",
    "content-autofill.googleapis.com",
    "safebrowsing.googleapis.com",
    "safebrowsingohttpgateway.googleapis.com",
    "android.clients.google.com",
    "mtalk.google.com",
    "edgedl.me.gvt1.com",
    "redirector.gvt1.com",
];

/// What builds walls.
pub(super) struct Mason {
    resolver: Arc<dyn Resolver>,
    allow_no_namespace: bool,
    /// Bytes count over the life of a Space, which may see several browsers.
    meters: Mutex<HashMap<SpaceId, Arc<Meter>>>,
}

/// One wall.
pub(super) struct Wall {
    proxy: Arc<Proxy>,
    meter: Arc<Meter>,
    /// Bytes sent and received that are in the figures already.
    told: Mutex<(u64, u64)>,
    reports: Mutex<Option<mpsc::Receiver<Report>>>,
    /// The kernel keeps it, not only the browser's command line.
    pub(super) has_namespace: bool,
}

/// Why there is no browser behind a wall.
#[derive(Debug, thiserror::Error)]
pub(super) enum WallError {
    /// Nothing of the policy is guessed at.
    #[error("the instance's network policy can not be understood")]
    Policy,
    /// The proxy has no place to listen.
    #[error("the browser's proxy could not be set up")]
    Door(#[source] io::Error),
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

impl Mason {
    pub(super) fn new(resolver: Arc<dyn Resolver>, allow_no_namespace: bool) -> Self {
        Self { resolver, allow_no_namespace, meters: Mutex::default() }
    }

    /// Starts a browser behind a wall.
    pub(super) async fn launch(
        &self,
        spec: LaunchSpec,
        space: SpaceId,
        policy: &NetworkPolicy,
    ) -> Result<(Browser, Wall), WallError> {
        let rules = rules(policy).ok_or(WallError::Policy)?;
        let spec = LaunchSpec { inline_frames: inline(policy), network: Network::Secluded, ..spec };
        let (browser, door) = match Browser::launch(spec.clone()).await {
            Ok(browser) => {
                let door = browser.take_door().ok_or_else(|| io::Error::other("no listener came"));
                match door.and_then(Door::secluded) {
                    Ok(door) => (browser, door),
                    Err(error) => {
                        browser.kill().await;
                        return Err(WallError::Door(error));
                    }
                }
            }
            Err(LaunchError::NoNetworkNamespace(reason)) if self.allow_no_namespace => {
                warn!(%reason, "A browser has no network namespace: only its command line keeps it to its proxy.");
                return self.launch_asked(spec, space, rules).await;
            }
            Err(error) => return Err(error.into()),
        };
        let wall = self.serve(door, space, rules, true);
        browser.watch_gate(Arc::new(OfProxy(Arc::downgrade(&wall.proxy))));
        Ok((browser, wall))
    }

    /// Starts a browser that is asked to go through the proxy.
    async fn launch_asked(
        &self,
        spec: LaunchSpec,
        space: SpaceId,
        rules: Policy,
    ) -> Result<(Browser, Wall), WallError> {
        let uid = spec.uid.map_or_else(|| rustix::process::geteuid().as_raw(), |(uid, _)| uid);
        let door = Door::on_loopback(uid).await.map_err(WallError::Door)?;
        let port = door.address().map_err(WallError::Door)?.port();
        let wall = self.serve(door, space, rules, false);
        match Browser::launch(LaunchSpec { network: Network::Proxy(port), ..spec }).await {
            Ok(browser) => {
                browser.watch_gate(Arc::new(OfProxy(Arc::downgrade(&wall.proxy))));
                Ok((browser, wall))
            }
            Err(error) => {
                wall.remove().await;
                Err(error.into())
            }
        }
    }

    fn serve(&self, door: Door, space: SpaceId, rules: Policy, has_namespace: bool) -> Wall {
        let meter = self.meter(space);
        let (proxy, reports) = Proxy::serve(door, rules, Arc::clone(&self.resolver), Arc::clone(&meter));
        Wall {
            proxy: Arc::new(proxy),
            told: Mutex::new((meter.sent(), meter.received())),
            meter,
            reports: Mutex::new(Some(reports)),
            has_namespace,
        }
    }

    fn meter(&self, space: SpaceId) -> Arc<Meter> {
        let mut meters = self.meters.lock();
        if meters.len() >= METERS_MAX {
            meters.retain(|_, meter| Arc::strong_count(meter) > 1);
        }
        Arc::clone(meters.entry(space).or_default())
    }
}

impl Wall {
    /// What it refuses, from now on; asked once.
    pub(super) fn reports(&self) -> Option<mpsc::Receiver<Report>> {
        self.reports.lock().take()
    }

    /// Takes it down: nothing is let through any more, and nothing of it is left.
    pub(super) async fn remove(&self) {
        self.proxy.close().await;
        let (sent, received) = (self.meter.sent(), self.meter.received());
        let (sent_before, received_before) = std::mem::replace(&mut *self.told.lock(), (sent, received));
        metrics::counter!("browserspace_egress_bytes_total", "direction" => "sent")
            .increment(sent.saturating_sub(sent_before));
        metrics::counter!("browserspace_egress_bytes_total", "direction" => "received")
            .increment(received.saturating_sub(received_before));
    }
}

/// The entries that name hosts; `None` if one of them does not.
fn rules(policy: &NetworkPolicy) -> Option<Policy> {
    let hosts = policy.allow.iter().filter(|entry| !INLINE_SCHEMES.contains(&entry.as_str()));
    let limits = Limits { bytes_max: policy.max_bytes, connections_max: policy.max_connections };
    let rules = Policy::parse(hosts, &policy.deny, limits).ok()?;
    let background = BACKGROUND.iter().filter_map(|host| host.parse().ok()).collect();
    Some(Policy { background, ..rules })
}

fn inline(policy: &NetworkPolicy) -> Vec<String> {
    let named = policy.allow.iter().filter(|entry| INLINE_SCHEMES.contains(&entry.as_str()));
    named.filter_map(|entry| entry.strip_suffix(':')).map(str::to_owned).collect()
}

/// What a proxy knows, in the browser's words. Does not keep the proxy.
struct OfProxy(Weak<Proxy>);

impl Gate for OfProxy {
    fn why(&self, address: &Url, since: Instant) -> Option<Refusal> {
        Some(match self.0.upgrade()?.why(address, since)? {
            Why::Blocked(rule) => Refusal::Blocked(rule.name()),
            Why::Failed(reason) => Refusal::Failed(reason),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c15_a_policy_that_can_not_be_understood_lets_no_browser_start() {
        let policy =
            |allow: &str| NetworkPolicy { allow: vec![allow.to_owned()], ..NetworkPolicy::default() };
        assert!(rules(&policy("1.2.3.4.5")).is_none());
        assert!(rules(&policy("file:")).is_none());
        assert!(rules(&policy("data:")).is_some_and(|rules| rules.allow.is_empty()));
        assert_eq!(inline(&policy("blob:")), ["blob"]);
    }

    /// A server of one page, which says whether its browser believes to be connected.
    async fn page() -> u16 {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                let page = "<title>t</title><script>document.title = 'online ' + navigator.onLine</script>";
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n";
                let answer = format!("{head}Content-Length: {}\r\n\r\n{page}", page.len());
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        port
    }

    async fn keeps_to_its_wall(browser: &Browser, allowed: u16, other: u16) {
        let call = || browser::Call::within(std::time::Duration::from_secs(30));
        let args = |port: u16| {
            serde_json::from_value(serde_json::json!({ "url": format!("http://127.0.0.1:{port}/") })).unwrap()
        };
        let arrived = browser.navigate(&args(allowed), &call()).await.unwrap();
        assert_eq!(arrived.http_status, Some(200));
        let title = browser.get_title(&browser::args::PageArgs::default(), &call()).await.unwrap().title;
        assert_eq!(title, "online true");
        let refused = browser.navigate(&args(other), &call()).await.unwrap_err();
        assert_eq!(refused.code(), "blocked_by_policy", "{refused}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn c08_a_browser_without_a_namespace_keeps_to_its_proxy_as_one_with_it_does() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
        let (allowed, other) = (page().await, page().await);
        let policy =
            NetworkPolicy { allow: vec![format!("127.0.0.1:{allowed}")], ..NetworkPolicy::default() };
        let ids = rustix::process::geteuid().is_root().then_some((64_323, 64_323));
        let mason = Mason::new(Arc::new(egress::SystemResolver), true);
        let space = SpaceId::from_uuid(uuid::Uuid::from_u128(1));
        for has_namespace in [true, false] {
            let spec = LaunchSpec::new(folder.path().join("p"), ids);
            let (browser, wall) = if has_namespace {
                mason.launch(spec, space, &policy).await.unwrap()
            } else {
                mason.launch_asked(spec, space, rules(&policy).unwrap()).await.unwrap()
            };
            assert_eq!(wall.has_namespace, has_namespace);
            keeps_to_its_wall(&browser, allowed, other).await;
            browser.shutdown(std::time::Duration::from_secs(2)).await;
            wall.remove().await;
        }
    }
}
