//! Whether browsers can live below a data folder: each needs the way to its profile, and a socket inside of it.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use super::record;

/// Why no browser can live below a data folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Uninhabitable {
    /// A folder on the way lets nobody but its owner pass.
    #[error("{0} is closed for the users that browsers run as")]
    Closed(PathBuf),
    /// The socket that Chromium keeps in its profile would have too long a path.
    #[error("the path of {folder} has {bytes} bytes, {bytes_max} are possible")]
    TooLong {
        /// The data folder.
        folder: PathBuf,
        /// How long its path is.
        bytes: usize,
        /// How long it may be.
        bytes_max: usize,
    },
}

impl Uninhabitable {
    /// What its operator can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        let elsewhere = "name a data folder elsewhere, as in /var/lib/browserspace";
        match self {
            Self::Closed(folder) => format!("chmod o+x {}, or {elsewhere}", folder.display()),
            Self::TooLong { .. } => elsewhere.to_owned(),
        }
    }
}

/// Looks whether browsers can live below `data_dir`, which need not be there yet. Whether its users can read it does not
/// matter: they pass through.
///
/// # Errors
/// [`Uninhabitable`]: every browser would fail to start.
pub fn habitable(data_dir: &Path) -> Result<(), Uninhabitable> {
    let folder = data_dir.canonicalize().or_else(|_| std::path::absolute(data_dir));
    let folder = folder.unwrap_or_else(|_| data_dir.to_owned());
    let bytes_max = browser::PROFILE_PATH_BYTES_MAX - record::PROFILE_BELOW_BYTES;
    let bytes = folder.as_os_str().len();
    if bytes > bytes_max {
        return Err(Uninhabitable::TooLong { folder, bytes, bytes_max });
    }
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    // The data folder itself is opened by the server.
    let above = folder.ancestors().skip(1);
    let is_closed =
        |folder: &&Path| folder.metadata().is_ok_and(|found| found.permissions().mode() & 0o001 == 0);
    match above.filter(is_closed).last() {
        Some(closed) => Err(Uninhabitable::Closed(closed.to_owned())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_outermost_closed_folder_on_the_way_is_named() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let data_dir = folder.path().join("a/data");
        fs::create_dir_all(&data_dir).expect("a folder can be made");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
        };
        mode(folder.path(), 0o711);
        mode(&data_dir, 0o700);
        assert_eq!(habitable(&data_dir), Ok(()), "the server opens its own folder");
        mode(&folder.path().join("a"), 0o700);
        assert_eq!(habitable(&data_dir), Err(Uninhabitable::Closed(folder.path().join("a"))));
        mode(folder.path(), 0o700);
        assert_eq!(habitable(&data_dir), Err(Uninhabitable::Closed(folder.path().to_owned())));
    }

    #[test]
    fn a_folder_is_too_long_from_the_first_byte_at_which_chromium_would_not_start() {
        let of_bytes = |bytes: usize| PathBuf::from(format!("/{}", "d".repeat(bytes - 1)));
        let most = browser::PROFILE_PATH_BYTES_MAX - record::PROFILE_BELOW_BYTES;
        assert_eq!(habitable(&of_bytes(most)), Ok(()));
        let too_long = habitable(&of_bytes(most + 1));
        assert!(matches!(too_long, Err(Uninhabitable::TooLong { bytes, .. }) if bytes == most + 1));
    }
}
