//! `Prefer: wait=N`: how long a submit may wait for its task's end (RFC 7240, section 4.3).

use std::time::Duration;

use axum::http::HeaderMap;

use super::body::whole_text;
use crate::problem::Problem;

/// The longest wait that is granted, in seconds.
pub(crate) const WAIT_SECONDS_MAX: u64 = 60;

/// The wait that is asked for, at most [`WAIT_SECONDS_MAX`]; the answer's `Preference-Applied` says what was granted.
///
/// Other preferences are left alone, as the RFC has it. A wait that is no number is refused: to ignore it would look
/// like a task that takes long.
pub(crate) fn wait(headers: &HeaderMap) -> Result<Option<Duration>, Problem> {
    let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let wait = values.flat_map(|value| value.split([',', ';'])).find_map(|preference| {
        let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
        name.trim().eq_ignore_ascii_case("wait").then(|| value.trim().trim_matches('"'))
    });
    let Some(wait) = wait else { return Ok(None) };
    let seconds = whole_text(0..=u64::from(u32::MAX))(wait)
        .map_err(|_| Problem::invalid("Prefer", "wait must be a whole number of seconds"))?;
    Ok(Some(Duration::from_secs(seconds.min(WAIT_SECONDS_MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(prefer: &str) -> Result<Option<u64>, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert("prefer", prefer.parse().expect("a header value"));
        wait(&headers).map(|wait| wait.map(|wait| wait.as_secs()))
    }

    #[test]
    fn a_wait_is_granted_up_to_its_bound() {
        assert_eq!(seconds("wait=10"), Ok(Some(10)));
        assert_eq!(seconds("respond-async, Wait=\"5\""), Ok(Some(5)));
        assert_eq!(seconds("wait=600"), Ok(Some(60)));
        assert_eq!(seconds("return=minimal"), Ok(None));
        for bad in ["wait", "wait=", "wait=soon", "wait=-1", "wait=1.5"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
