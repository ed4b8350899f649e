//! A picture in which elements are framed and named by their refs. All of it is drawn here, and nothing in the page.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::json;

use super::args::{AnnotateArgs, ScreenshotArgs, SnapshotArgs};
use super::paint::Canvas;
use super::results::{Annotated, Area, Legend};
use crate::act::{Act, Needs};
use crate::browser::Browser;
use crate::call::{Call, NAVIGATION_TIMEOUT};
use crate::element::MARK;
use crate::error::{Check, Error};
use crate::reference::{ElementRef, NodeKey};

/// So many elements are framed at most; more would cover each other.
const MARKS_MAX: usize = 200;

/// So many elements are asked about at once.
const AT_ONCE: usize = 32;

#[derive(Deserialize)]
struct Marked {
    #[serde(default)]
    gone: bool,
    area: Option<Area>,
}

impl Browser {
    /// Takes a picture in which elements are framed and named by their refs.
    ///
    /// # Errors
    /// [`Error::ResultTooLarge`] as for a picture; for each of `refs` [`Error::StaleRef`], or
    /// [`Error::ElementNotActionable`] if it can not be seen.
    pub async fn screenshot_annotate(&self, args: &AnnotateArgs, call: &Call) -> Result<Annotated, Error> {
        let act =
            self.begin(args.tab, call.deadline(args.timeout_ms, NAVIGATION_TIMEOUT), call, Needs::Page)?;
        act.read(Box::pin(act.annotate(args))).await
    }
}

impl Act<'_> {
    async fn annotate(&self, args: &AnnotateArgs) -> Result<Annotated, Error> {
        let wanted = ScreenshotArgs {
            reference: args.reference,
            full_page: args.full_page,
            max_width: args.max_width,
            ..ScreenshotArgs::default()
        };
        // The snapshot finds the elements, and the fields that hide what they hold.
        let (lines, _) = self.take(&SnapshotArgs { interactive: true, ..SnapshotArgs::default() }).await?;
        let (picture, clip) = self.picture(&wanted).await?;
        let all: Vec<ElementRef> =
            lines.iter().filter_map(|line| line.split(' ').next()?.parse().ok()).collect();
        let (refs, is_named) = if args.refs.is_empty() { (&all, false) } else { (&args.refs, true) };
        let mut canvas = Canvas::decode(&picture.bytes).ok_or(Error::ResultTooLarge)?;
        // From CSS pixels of the view to pixels of the picture.
        let scale = f64::from(canvas.width()) / clip.width;
        let in_picture = |area: Area| Area {
            x: (area.x + clip.view_x - clip.x) * scale,
            y: (area.y + clip.view_y - clip.y) * scale,
            width: area.width * scale,
            height: area.height * scale,
        };
        let hidden = self.hidden_among(&all);
        for (_, area) in self.marks(&hidden, true).await?.into_iter().filter_map(|(r, area)| Some((r, area?)))
        {
            canvas.cover(in_picture(area));
        }
        let mut legend = Vec::new();
        for (reference, area) in self.marks(refs, is_named).await? {
            let Some(area) = area else {
                if is_named {
                    return Err(Error::ElementNotActionable {
                        reference,
                        check: Check::Visible,
                        covered_by: None,
                    });
                }
                continue;
            };
            let area = in_picture(area);
            if canvas.shows(area) && legend.len() < MARKS_MAX {
                legend.push(Legend { reference, area: rounded(area) });
            }
        }
        for (index, mark) in legend.iter().enumerate() {
            canvas.frame(mark.area, &mark.reference.to_string(), index);
        }
        let bytes = canvas.encode().ok_or(Error::ResultTooLarge)?;
        let (width, height) = (canvas.width(), canvas.height());
        let picture =
            super::results::Screenshot { bytes: bytes.into(), media_type: "image/png", width, height };
        Ok(Annotated { picture, legend })
    }

    /// Those of the elements that hide what they hold.
    fn hidden_among(&self, refs: &[ElementRef]) -> Vec<ElementRef> {
        let keys: HashSet<NodeKey> = self.browser.hub.state().secret_fields.iter().cloned().collect();
        refs.iter()
            .copied()
            .filter(|reference| self.key_of(*reference).is_ok_and(|key| keys.contains(&key)))
            .collect()
    }

    /// Where each of the elements is in the view; `None` for what can not be seen.
    async fn marks(
        &self,
        refs: &[ElementRef],
        is_named: bool,
    ) -> Result<Vec<(ElementRef, Option<Area>)>, Error> {
        if refs.is_empty() {
            return Ok(Vec::new());
        }
        let places = self.frame_places().await?;
        let mut marks = Vec::new();
        for some in refs.chunks(AT_ONCE) {
            let asked = some.iter().map(|reference| {
                futures::FutureExt::boxed(async move {
                    let element = self.element(*reference).await?;
                    let marked: Marked = self.on(&element, MARK, &[json!(is_named)]).await?;
                    Ok::<_, Error>((element.key.frame.clone(), marked))
                })
            });
            for (reference, marked) in some.iter().zip(futures::future::join_all(asked).await) {
                match marked {
                    Ok((_, Marked { gone: true, .. })) | Err(Error::StaleRef { .. }) if !is_named => {}
                    Ok((_, Marked { gone: true, .. })) => {
                        return Err(Error::StaleRef { reference: *reference });
                    }
                    Ok((frame, Marked { area, .. })) => {
                        let place = places.get(&frame).copied().flatten();
                        marks.push((*reference, area.zip(place).map(|(area, place)| place.out(area))));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(marks)
    }
}

fn rounded(area: Area) -> Area {
    Area { x: area.x.round(), y: area.y.round(), width: area.width.round(), height: area.height.round() }
}
