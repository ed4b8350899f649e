//! What pages are told of the place that they are in: time zone, language, pixels, colours, and which browser it is.
//!
//! Time zone, accepted languages, pixels and user agent are given to the whole process tree at its start, so that every
//! worker has them too. The rest is set in each page and each frame of another process before its first document.

use chromiumoxide_cdp::cdp::browser_protocol::emulation::{
    MediaFeature, SetEmulatedMediaParams, SetLocaleOverrideParams,
};

use crate::launch::LaunchSpec;
use crate::session::Session;

/// Light or dark, as pages ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourScheme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// What pages are told of the place that they are in. What is not set is the browser's own.
///
/// The texts are not checked here: who sets them has done so.
#[derive(Debug, Clone, PartialEq)]
pub struct Appearance {
    /// A name of the IANA's list, like `Europe/Berlin`.
    pub timezone: Option<String>,
    /// A BCP 47 tag, like `de-DE`.
    pub locale: Option<String>,
    /// Device pixels for each CSS pixel.
    pub device_scale: f64,
    /// What `prefers-color-scheme` says.
    pub colour_scheme: Option<ColourScheme>,
    /// The whole user agent.
    pub user_agent: Option<String>,
}

impl Default for Appearance {
    fn default() -> Self {
        Self { timezone: None, locale: None, device_scale: 1.0, colour_scheme: None, user_agent: None }
    }
}

impl Appearance {
    /// The same start with what is given to the whole process tree.
    pub(crate) fn dress(&self, spec: &LaunchSpec) -> LaunchSpec {
        let mut spec = spec.clone();
        if let Some(timezone) = &self.timezone {
            spec.environment.push(("TZ".to_owned(), timezone.clone()));
        }
        if let Some(locale) = &self.locale {
            spec.arguments.push(format!("--lang={locale}"));
            spec.arguments.push(format!("--accept-lang={}", accepted(locale)));
        }
        if (self.device_scale - 1.0).abs() > f64::EPSILON {
            // Frames of another process hear of no override before their first script.
            spec.arguments.push(format!("--force-device-scale-factor={}", self.device_scale));
        }
        if let Some(user_agent) = &self.user_agent {
            spec.arguments.push(format!("--user-agent={user_agent}"));
        }
        spec
    }

    /// Sets the rest in a page or frame. Only posted, never waited for.
    pub(crate) fn post(&self, session: &Session) {
        self.post_locale(session);
        if let Some(scheme) = self.colour_scheme {
            let value = match scheme {
                ColourScheme::Light => "light",
                ColourScheme::Dark => "dark",
            };
            let feature = MediaFeature { name: "prefers-color-scheme".to_owned(), value: value.to_owned() };
            session.post(&SetEmulatedMediaParams { media: None, features: Some(vec![feature]) });
        }
    }

    /// Sets the locale. Refused where a page of the same process has set it, and then it is set.
    pub(crate) fn post_locale(&self, session: &Session) {
        if let Some(locale) = &self.locale {
            session.post(&SetLocaleOverrideParams { locale: Some(locale.replace('-', "_")) });
        }
    }
}

/// The languages that are asked for: the locale, and its language alone.
fn accepted(locale: &str) -> String {
    match locale.split_once('-') {
        Some((language, _)) => format!("{locale},{language}"),
        None => locale.to_owned(),
    }
}
