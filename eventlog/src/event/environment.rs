//! What the pages of a Space are told of the place that they are in.

use serde::{Deserialize, Serialize};

use crate::redaction::Redacted;

/// The options of a Space's browser. What is not set is the browser's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// A name of the IANA's list, like `Europe/Berlin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// A BCP 47 tag of language, script and region, like `de-DE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locale: Option<String>,
    /// How large the view is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub viewport: Option<Viewport>,
    /// Device pixels for each CSS pixel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_scale: Option<f64>,
    /// What pages that ask for it are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colour_scheme: Option<ColourScheme>,
    /// The whole user agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<Redacted<String>>,
    /// What each start of the browser opens first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_page: Option<Redacted<String>>,
    /// `host` or `host:port` that may be reached besides what the instance's policy allows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<String>,
}

impl Environment {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// The size of a view, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Viewport {
    /// Its width.
    pub width: u32,
    /// Its height.
    pub height: u32,
}

/// Light or dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColourScheme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}
