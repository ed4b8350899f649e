//! The live view of a Space: the newest picture of whatever browser it has, over the restarts of that browser.

use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::sync::watch;

use crate::{
    rejection::Rejection,
    runtime::ScreencastFrame,
    supervisor::{Live, Standing},
};

type Frames = watch::Receiver<Option<ScreencastFrame>>;

/// The frames of the browser that `standing` tells of, and of those that follow it. Ends with the supervisor. Who is
/// slow misses frames.
///
/// # Errors
/// [`Rejection::NoScreencast`]: a runtime of this kind has no picture.
pub(crate) fn follow(
    standing: watch::Receiver<Standing>,
) -> Result<BoxStream<'static, ScreencastFrame>, Rejection> {
    let frames = match &*standing.borrow() {
        Standing::Ready(live) => Some(frames_of(live).ok_or(Rejection::NoScreencast)?),
        Standing::Starting | Standing::Unavailable { .. } => None,
    };
    let watched = Watched { standing, frames };
    Ok(stream::unfold(watched, |mut watched| async { watched.next().await.map(|frame| (frame, watched)) })
        .boxed())
}

fn frames_of(live: &Live) -> Option<Frames> {
    live.runtime.screencast()
}

struct Watched {
    standing: watch::Receiver<Standing>,
    /// Of the runtime that takes steps now.
    frames: Option<Frames>,
}

impl Watched {
    async fn next(&mut self) -> Option<ScreencastFrame> {
        loop {
            let Some(frames) = &mut self.frames else {
                self.standing.changed().await.ok()?;
                self.look();
                continue;
            };
            tokio::select! {
                changed = self.standing.changed() => {
                    changed.ok()?;
                    self.look();
                }
                changed = frames.changed() => match changed {
                    Ok(()) => {
                        if let Some(frame) = frames.borrow_and_update().clone() {
                            return Some(frame);
                        }
                    }
                    // Its browser is gone; what follows it is told by its supervisor.
                    Err(_) => self.frames = None,
                },
            }
        }
    }

    fn look(&mut self) {
        self.frames = match &*self.standing.borrow_and_update() {
            Standing::Ready(live) => frames_of(live),
            Standing::Starting | Standing::Unavailable { .. } => None,
        };
    }
}
