//! The command line of the browser.

use std::ffi::OsString;

use crate::launch::LaunchSpec;

/// Always given: the debugging pipe, and silence towards the network.
const ALWAYS: [&str; 28] = [
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
];

/// Parts of the browser that call home, that put windows of their own over a page, or that let a page's timers wait
/// for the next picture after each input: nobody watches, and an agent waits for what the page does.
const DISABLED_FEATURES: &str = "--disable-features=Translate,MediaRouter,DialMediaRouteProvider,\
     OptimizationHints,OptimizationGuideModelDownloading,AutofillServerCommunication,\
     CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions,\
     SafeBrowsingEnhancedProtection,HttpsUpgrades,GlobalMediaControls,PaintHolding,DestroyProfileOnBrowserClose,\
     DeferRendererTasksAfterInput";

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
    if let Some(proxy) = &spec.proxy {
        arguments.push(format!("--proxy-server={proxy}").into());
        // Loopback is no exception.
        arguments.push("--proxy-bypass-list=<-loopback>".into());
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
}
