//! The command line of the browser.

use std::ffi::OsString;

use crate::launch::{LaunchSpec, Network};
use crate::namespace;

/// Always given: the debugging pipe, and silence towards the network.
const ALWAYS: [&str; 30] = [
    "--remote-debugging-pipe",
    "--no-startup-window",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--no-service-autorun",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-hang-monitor",
    "--disable-quic",
    "--disable-sync",
    // A page is as wide as the viewport, with or without something to scroll.
    "--hide-scrollbars",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    // Without these two WebRTC sends UDP past the proxy; both spellings are in use.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    // A page in a background tab must go on answering.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    // Whether somebody is signed in, and whether parts of it are new, is asked whatever the flags above say. So it is
    // asked at a port that no browser connects to (the discard port is on the Fetch standard's list of bad ports):
    // such a request ends inside of the browser. Pages reach the real hosts as before.
    "--gaia-url=http://127.0.0.1:9/",
    "--component-updater=url-source=http://127.0.0.1:9/",
];

/// Given with a proxy: loopback and the link are no exceptions, and the browser asks no name server.
const PROXIED: [&str; 3] = [
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--dns-prefetch-disable",
];

/// Parts of the browser that call home, that put windows of their own over a page, or that let a page's timers wait
/// for the next picture after each input: nobody watches, and an agent waits for what the page does.
const DISABLED_FEATURES: &str = "--disable-features=Translate,MediaRouter,DialMediaRouteProvider,\
     OptimizationHints,OptimizationGuideModelDownloading,AutofillServerCommunication,\
     CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,\
     SafeBrowsingEnhancedProtection,HttpsUpgrades,GlobalMediaControls,PaintHolding,DestroyProfileOnBrowserClose,\
     DeferRendererTasksAfterInput,AsyncDns,DnsOverHttps,DnsOverHttpsUpgrade,WebTransport,\
     NetworkTimeServiceQuerying";

pub(crate) fn arguments(spec: &LaunchSpec, sandbox: bool) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ALWAYS.iter().map(OsString::from).collect();
    arguments.push(DISABLED_FEATURES.into());
    let mut profile = OsString::from("--user-data-dir=");
    profile.push(&spec.profile_dir);
    arguments.push(profile);
    let (width, height) = spec.viewport;
    arguments.push(format!("--window-size={width},{height}").into());
    if spec.headless {
        arguments.push("--headless=new".into());
    }
    if !sandbox {
        arguments.push("--no-sandbox".into());
    }
    let port = match spec.network {
        Network::Machine => None,
        Network::Proxy(port) => Some(port),
        Network::Secluded => Some(namespace::PORT),
    };
    if let Some(port) = port {
        arguments.push(format!("--proxy-server=http://127.0.0.1:{port}").into());
        arguments.extend(PROXIED.map(OsString::from));
    }
    arguments.extend(spec.arguments.iter().map(OsString::from));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_opened_and_the_sandbox_stays_on() {
        let arguments = arguments(&LaunchSpec::new("/p", None), true);
        let text = arguments.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ");
        assert!(text.contains("--remote-debugging-pipe"));
        assert!(!text.contains("--remote-debugging-port"));
        assert!(!text.contains("no-sandbox"));
    }

    #[test]
    fn c08_behind_a_proxy_loopback_is_no_exception_and_no_name_server_is_asked() {
        for (network, port) in [(Network::Proxy(4000), 4000), (Network::Secluded, namespace::PORT)] {
            let spec = LaunchSpec { network, ..LaunchSpec::new("/p", None) };
            let text = arguments(&spec, true).join(OsString::from(" ").as_os_str());
            let text = text.to_string_lossy();
            assert!(text.contains(&format!("--proxy-server=http://127.0.0.1:{port}")), "{text}");
            assert!(text.contains("<-loopback>") && text.contains("MAP * ~NOTFOUND"), "{text}");
            assert!(text.contains("--disable-quic") && text.contains("disable_non_proxied_udp"), "{text}");
        }
    }
}
