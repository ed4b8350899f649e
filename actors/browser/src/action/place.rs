//! Where the frames of a page are in its view: from a box in a frame to the same box on the page.

use std::collections::HashMap;
use std::sync::Arc;

use super::results::Area;
use crate::act::Act;
use crate::element::Spot;
use crate::error::Error;
use crate::frame::PageFrame;

/// Far enough apart that a scale can be told, in CSS pixels.
const APART: f64 = 100.0;

/// Where a frame's view is in that of the page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    x: f64,
    y: f64,
    scale_x: f64,
    scale_y: f64,
}

impl Place {
    const PAGE: Self = Self { x: 0.0, y: 0.0, scale_x: 1.0, scale_y: 1.0 };

    /// A box in the frame as a box on the page.
    pub(super) fn out(self, area: Area) -> Area {
        Area {
            x: self.x + area.x * self.scale_x,
            y: self.y + area.y * self.scale_y,
            width: area.width * self.scale_x,
            height: area.height * self.scale_y,
        }
    }

    /// A place in this place.
    fn inside(self, inner: Self) -> Self {
        Self {
            x: self.x + inner.x * self.scale_x,
            y: self.y + inner.y * self.scale_y,
            scale_x: self.scale_x * inner.scale_x,
            scale_y: self.scale_y * inner.scale_y,
        }
    }
}

impl Act<'_> {
    /// The place of each frame; `None` for one that is turned, or not shown.
    pub(super) async fn frame_places(&self) -> Result<HashMap<Arc<str>, Option<Place>>, Error> {
        let (frames, _) = self.frames().await?;
        let mut places: HashMap<Arc<str>, Option<Place>> = HashMap::new();
        // Parents come first.
        for frame in &frames {
            let outer = frame.parent.as_ref().and_then(|id| frames.iter().find(|outer| outer.id == *id));
            let place = match outer {
                None => Some(Place::PAGE),
                Some(outer) => match places.get(&outer.id).copied().flatten() {
                    Some(around) => self.place_in(outer, frame).await.map(|place| around.inside(place)),
                    None => None,
                },
            };
            places.insert(frame.id.clone(), place);
        }
        Ok(places)
    }

    async fn place_in(&self, outer: &PageFrame, frame: &PageFrame) -> Option<Place> {
        let at = |side| Spot { x: side, y: side };
        let (corner, other) =
            tokio::join!(self.hop(outer, frame, at(0.0)), self.hop(outer, frame, at(APART)));
        let (corner, other) = (corner.ok()?.spot()?, other.ok()?.spot()?);
        let place = Place {
            x: corner.x,
            y: corner.y,
            scale_x: (other.x - corner.x) / APART,
            scale_y: (other.y - corner.y) / APART,
        };
        (place.scale_x > 0.0 && place.scale_y > 0.0).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_in_a_scaled_frame_in_a_moved_frame_is_where_it_is_seen() {
        let outer = Place { x: 10.0, y: 20.0, scale_x: 2.0, scale_y: 2.0 };
        let inner = Place { x: 5.0, y: 5.0, scale_x: 0.5, scale_y: 1.0 };
        let area = Area { x: 4.0, y: 3.0, width: 8.0, height: 6.0 };
        let seen = outer.inside(inner).out(area);
        assert_eq!(seen, Area { x: 24.0, y: 36.0, width: 8.0, height: 12.0 });
    }
}
