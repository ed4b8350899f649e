//! Pictures of the page.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chromiumoxide_cdp::cdp::browser_protocol::page::{
    CaptureScreenshotFormat, CaptureScreenshotParams, GetLayoutMetricsParams, Viewport,
};
use serde::Deserialize;

use super::args::{ImageFormat, ScreenshotArgs};
use super::results::Screenshot;
use crate::act::{Act, Needs};
use crate::browser::Browser;
use crate::call::{ACTION_TIMEOUT, Call};
use crate::element::Spot;
use crate::error::{Check, Error};
use crate::reference::ElementRef;

const BOX: &str = include_str!("../js/box.js");

/// The largest picture: pixels a side, and bytes of its file.
const SIDE_MAX: f64 = 16_384.0;
const FILE_BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    css_content_size: Area,
    css_visual_viewport: VisualViewport,
}

#[derive(Deserialize)]
struct Area {
    width: f64,
    height: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VisualViewport {
    page_x: f64,
    page_y: f64,
    client_width: f64,
    client_height: f64,
}

/// What part of the page a picture shows, and what is in view, in CSS pixels from the page's corner.
pub(super) struct Shown {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) view_x: f64,
    pub(super) view_y: f64,
}

impl Browser {
    /// Takes a picture.
    ///
    /// # Errors
    /// [`Error::ResultTooLarge`] beyond 8 MiB: choose jpeg, a smaller `max_width` or an element.
    pub async fn screenshot(&self, args: &ScreenshotArgs, call: &Call) -> Result<Screenshot, Error> {
        let act = self.begin(args.tab, call.deadline(args.timeout_ms, ACTION_TIMEOUT), call, Needs::Page)?;
        Ok(act.read(act.picture(args)).await?.0)
    }
}

impl Act<'_> {
    /// A picture, and what part of the page it shows.
    pub(super) async fn picture(&self, args: &ScreenshotArgs) -> Result<(Screenshot, Shown), Error> {
        if args.reference.is_some() && args.full_page {
            return Err(Error::invalid("name a ref or full_page, not both"));
        }
        // In the back nothing is drawn, and the picture would never come.
        self.to_front().await?;
        let clip = match args.reference {
            Some(reference) => self.clip_of(reference).await?,
            None => self.clip_of_page(args.full_page).await?,
        };
        let metrics: Metrics = self.fetch(&self.page, &GetLayoutMetricsParams::default()).await?;
        let view = metrics.css_visual_viewport;
        let shown =
            Shown { x: clip.x, y: clip.y, width: clip.width, view_x: view.page_x, view_y: view.page_y };
        let density = self.browser.appearance.device_scale;
        let clip = scaled(clip, args.max_width, density);
        let (format, media_type) = match args.format {
            ImageFormat::Png => (CaptureScreenshotFormat::Png, "image/png"),
            ImageFormat::Jpeg => (CaptureScreenshotFormat::Jpeg, "image/jpeg"),
            ImageFormat::Webp => (CaptureScreenshotFormat::Webp, "image/webp"),
        };
        let side = |length: f64| pixels(length * clip.scale * density);
        let (width, height) = (side(clip.width), side(clip.height));
        let capture = CaptureScreenshotParams {
            format: Some(format),
            quality: args.quality.filter(|_| args.format != ImageFormat::Png).map(i64::from),
            capture_beyond_viewport: Some(args.full_page || args.reference.is_some()),
            clip: Some(clip),
            ..CaptureScreenshotParams::default()
        };
        let picture = self.call(&capture).await?;
        let bytes =
            STANDARD.decode(AsRef::<str>::as_ref(&picture.data)).map_err(|_| Error::ResultTooLarge)?;
        if bytes.len() > FILE_BYTES_MAX {
            return Err(Error::ResultTooLarge);
        }
        Ok((Screenshot { bytes: bytes.into(), media_type, width, height }, shown))
    }

    /// Width and height of what is in view, in CSS pixels.
    pub(super) async fn view_size(&self) -> Result<(f64, f64), Error> {
        let metrics: Metrics = self.fetch(&self.page, &GetLayoutMetricsParams::default()).await?;
        Ok((metrics.css_visual_viewport.client_width, metrics.css_visual_viewport.client_height))
    }

    async fn clip_of_page(&self, whole: bool) -> Result<Viewport, Error> {
        let metrics: Metrics = self.fetch(&self.page, &GetLayoutMetricsParams::default()).await?;
        let view = metrics.css_visual_viewport;
        Ok(if whole {
            let Area { width, height } = metrics.css_content_size;
            viewport(0.0, 0.0, width.min(SIDE_MAX), height.min(SIDE_MAX))
        } else {
            viewport(view.page_x, view.page_y, view.client_width, view.client_height)
        })
    }

    async fn clip_of(&self, reference: ElementRef) -> Result<Viewport, Error> {
        let element = self.element(reference).await?;
        self.ready(&element, &[Check::Visible, Check::Stable]).await?;
        if element.key.frame == self.target {
            let area: Option<Area2> = self.on(&element, BOX, &[]).await?;
            let Area2 { x, y, width, height } = area.ok_or(Error::StaleRef { reference })?;
            return Ok(viewport(x, y, width.min(SIDE_MAX), height.min(SIDE_MAX)));
        }
        // Inside a frame only what is in view can be seen; its corner is found as a click would find it.
        let metrics: Metrics = self.fetch(&self.page, &GetLayoutMetricsParams::default()).await?;
        let view = metrics.css_visual_viewport;
        let corner = self.aim(&element, &[], Some(Spot { x: 0.0, y: 0.0 }), true).await?;
        let area: Option<Area2> = self.on(&element, BOX, &[]).await?;
        let Area2 { width, height, .. } = area.ok_or(Error::StaleRef { reference })?;
        Ok(viewport(
            corner.x + view.page_x,
            corner.y + view.page_y,
            width.min(view.client_width - corner.x),
            height.min(view.client_height - corner.y),
        ))
    }
}

#[derive(Deserialize)]
struct Area2 {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

fn viewport(x: f64, y: f64, width: f64, height: f64) -> Viewport {
    Viewport { x, y, width: width.max(1.0), height: height.max(1.0), scale: 1.0 }
}

fn scaled(mut clip: Viewport, max_width: Option<u32>, density: f64) -> Viewport {
    clip.scale = max_width.map_or(1.0, |max| (f64::from(max) / (clip.width * density)).min(1.0));
    clip
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most SIDE_MAX and positive")]
fn pixels(side: f64) -> u32 {
    side.round() as u32
}
