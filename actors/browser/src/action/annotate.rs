//! A picture in which elements are framed and named by their refs. All of it is drawn here, and nothing in the page.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::json;

use super::args::{AnnotateArgs, ScreenshotArgs, SnapshotArgs};
use super::paint::Canvas;
use super::results::{Annotated, Area, Legend, Screenshot};
use super::screenshot::Shown;
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

/// So many pictures are taken of a page whose hidden fields move.
const PICTURES_MAX: usize = 4;

/// What part of the page a picture shows, and how large.
struct Scene {
    shown: Shown,
    scale: f64,
}

impl Scene {
    fn in_picture(&self, area: Area) -> Area {
        let Self { shown, scale } = self;
        Area {
            x: (area.x + shown.view_x - shown.x) * scale,
            y: (area.y + shown.view_y - shown.y) * scale,
            width: area.width * scale,
            height: area.height * scale,
        }
    }
}

/// Of which elements the place is asked, and what becomes of those that have none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Those that can be acted on: what is gone or covered is left out.
    Any,
    /// Those that the caller named: each must be there.
    Named,
    /// Those that hide what they hold: whatever of them can be seen has a place, or there is no picture.
    Hidden,
}

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
        // The snapshot finds the elements, and the fields that hide what they hold.
        let (lines, _) = self.take(&SnapshotArgs { interactive: true, ..SnapshotArgs::default() }).await?;
        let all: Vec<ElementRef> =
            lines.iter().filter_map(|line| line.split(' ').next()?.parse().ok()).collect();
        let (mut canvas, scene) = self.covered_picture(args, &all).await?;
        let (refs, asked) =
            if args.refs.is_empty() { (&all, Asked::Any) } else { (&args.refs, Asked::Named) };
        let mut legend = Vec::new();
        for (reference, area) in self.marks(refs, asked).await? {
            let Some(area) = area else {
                if asked == Asked::Named {
                    let check = Check::Visible;
                    return Err(Error::ElementNotActionable { reference, check, covered_by: None });
                }
                continue;
            };
            let area = scene.in_picture(area);
            if canvas.shows(area) && legend.len() < MARKS_MAX {
                legend.push(Legend { reference, area: rounded(area) });
            }
        }
        for (index, mark) in legend.iter().enumerate() {
            canvas.frame(mark.area, &mark.reference.to_string(), index);
        }
        let bytes = canvas.encode().ok_or(Error::ResultTooLarge)?;
        let (width, height) = (canvas.width(), canvas.height());
        let picture = Screenshot { bytes: bytes.into(), media_type: "image/png", width, height };
        Ok(Annotated { picture, legend })
    }

    /// A picture in which what fields hide is covered. The fields are looked for before and after it is taken: one that
    /// moves in between would be covered where it is not.
    async fn covered_picture(
        &self,
        args: &AnnotateArgs,
        all: &[ElementRef],
    ) -> Result<(Canvas, Scene), Error> {
        let wanted = ScreenshotArgs {
            reference: args.reference,
            full_page: args.full_page,
            max_width: args.max_width,
            ..ScreenshotArgs::default()
        };
        let hidden = self.hidden_among(all);
        for _ in 0..PICTURES_MAX {
            let before = self.marks(&hidden, Asked::Hidden).await?;
            let (picture, shown) = self.picture(&wanted).await?;
            if self.marks(&hidden, Asked::Hidden).await? != before {
                continue;
            }
            let mut canvas = Canvas::decode(&picture.bytes).ok_or(Error::ResultTooLarge)?;
            // From CSS pixels of the view to pixels of the picture.
            let scene = Scene { scale: f64::from(canvas.width()) / shown.width, shown };
            for area in before.into_iter().filter_map(|(_, area)| area) {
                canvas.cover(scene.in_picture(area));
            }
            return Ok((canvas, scene));
        }
        match hidden.first() {
            Some(reference) => Err(Error::ElementNotActionable {
                reference: *reference,
                check: Check::Stable,
                covered_by: None,
            }),
            None => Err(Error::ResultTooLarge),
        }
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
        asked: Asked,
    ) -> Result<Vec<(ElementRef, Option<Area>)>, Error> {
        if refs.is_empty() {
            return Ok(Vec::new());
        }
        let places = self.frame_places().await?;
        let mut marks = Vec::new();
        for some in refs.chunks(AT_ONCE) {
            let answers = some.iter().map(|reference| {
                futures::FutureExt::boxed(async move {
                    let element = self.element(*reference).await?;
                    let marked: Marked = self.on(&element, MARK, &[json!(asked != Asked::Any)]).await?;
                    Ok::<_, Error>((element.key.frame.clone(), marked))
                })
            });
            for (reference, marked) in some.iter().zip(futures::future::join_all(answers).await) {
                match marked {
                    Ok((_, Marked { gone: true, .. })) | Err(Error::StaleRef { .. })
                        if asked != Asked::Named => {}
                    Ok((_, Marked { gone: true, .. })) => {
                        return Err(Error::StaleRef { reference: *reference });
                    }
                    Ok((frame, Marked { area, .. })) => {
                        let place = places.get(&frame).copied().flatten();
                        if asked == Asked::Hidden && area.is_some() && place.is_none() {
                            let (reference, check) = (*reference, Check::Visible);
                            return Err(Error::ElementNotActionable { reference, check, covered_by: None });
                        }
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
