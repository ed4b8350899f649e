//! `CONNECT`: bytes both ways, unread. What https and WebSocket go through (RFC 9110 section 9.3.6).

use std::sync::Arc;

use hyper::{Request, body::Incoming, upgrade};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tracing::debug;

use crate::proxy::{IDLE_WAIT, Shared, Upstream};

/// Joins the two ends once the answer to the `CONNECT` is on its way.
pub(crate) fn join(shared: &Arc<Shared>, request: Request<Incoming>, upstream: Upstream) {
    let token = shared.closing.clone();
    shared.tasks.spawn(async move {
        let Upstream { mut stream, permit: _permit } = upstream;
        let pulse = stream.pulse();
        let joined = async {
            // The browser may hang up before it hears the answer.
            let Ok(upgraded) = upgrade::on(request).await else { return };
            let ended = copy_bidirectional(&mut TokioIo::new(upgraded), &mut stream).await;
            debug!(ended = ended.is_ok(), "A tunnel ended.");
        };
        tokio::select! {
            () = joined => {}
            () = pulse.stopped(IDLE_WAIT) => {}
            () = token.cancelled() => {}
        }
    });
}
