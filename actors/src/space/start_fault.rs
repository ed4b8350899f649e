//! Why a browser can not be started: a closed list. Its words and sentences are ours, so callers may see them; what
//! the system said, with its paths, stays in the log of the program.

/// Why no runtime takes steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StartFault {
    /// Install a browser, or configure its path.
    NoExecutable,
    /// Offer Chromium user namespaces, or allow it to run without its sandbox.
    NoSandbox,
    /// Offer network namespaces, or allow browsers to run without.
    NoNetworkNamespace,
    /// Let the browsers' users pass through the folders above the data folder.
    ProfileUnreachable,
    /// Choose a data folder with a shorter path.
    ProfilePathTooLong,
    /// Give the browsers users of their own.
    RunsAsRoot,
    /// Correct the instance's network policy.
    PolicyNotUnderstood,
    /// Choose another kind of instance, or configure the server for this one.
    KindNotDriven,
    /// Every user for browsers is in use: close a Space, or configure more.
    NoUserFree,
    /// The Space's environment could not be read from the log.
    EnvironmentUnreadable,
    /// The system refused a file, a process or a socket.
    SystemRefused,
    /// It ended before it answered.
    EndedEarly,
    /// It did not answer in time.
    Overdue,
    /// It answered, and did not accept its set-up.
    SetUpRefused,
    /// It started, and was lost again and again.
    LostAgain,
}

impl StartFault {
    /// Every one.
    pub const ALL: [Self; 15] = [
        Self::NoExecutable,
        Self::NoSandbox,
        Self::NoNetworkNamespace,
        Self::ProfileUnreachable,
        Self::ProfilePathTooLong,
        Self::RunsAsRoot,
        Self::PolicyNotUnderstood,
        Self::KindNotDriven,
        Self::NoUserFree,
        Self::EnvironmentUnreadable,
        Self::SystemRefused,
        Self::EndedEarly,
        Self::Overdue,
        Self::SetUpRefused,
        Self::LostAgain,
    ];

    /// The stable word, `details.reason` of `runtime_not_ready`.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NoExecutable => "no_executable",
            Self::NoSandbox => "no_sandbox",
            Self::NoNetworkNamespace => "no_network_namespace",
            Self::ProfileUnreachable => "profile_unreachable",
            Self::ProfilePathTooLong => "profile_path_too_long",
            Self::RunsAsRoot => "runs_as_root",
            Self::PolicyNotUnderstood => "policy_not_understood",
            Self::KindNotDriven => "kind_not_driven",
            Self::NoUserFree => "no_user_free",
            Self::EnvironmentUnreadable => "environment_unreadable",
            Self::SystemRefused => "system_refused",
            Self::EndedEarly => "ended_early",
            Self::Overdue => "overdue",
            Self::SetUpRefused => "set_up_refused",
            Self::LostAgain => "lost_again",
        }
    }

    /// What a caller is told.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::NoExecutable => "the browser can not be started: no browser executable was found",
            Self::NoSandbox => "the browser can not be started: this system offers it no sandbox",
            Self::NoNetworkNamespace => {
                "the browser can not be started: this system offers no network namespace"
            }
            Self::ProfileUnreachable => "the browser can not be started: it can not reach its profile folder",
            Self::ProfilePathTooLong => {
                "the browser can not be started: the path of its profile folder is too long"
            }
            Self::RunsAsRoot => "the browser can not be started: it would run as root",
            Self::PolicyNotUnderstood => {
                "the browser can not be started: its instance's network policy can not be understood"
            }
            Self::KindNotDriven => {
                "the browser can not be started: this server does not drive instances of this kind"
            }
            Self::NoUserFree => "the browser is not ready: every user for browsers is in use",
            Self::EnvironmentUnreadable => {
                "the browser is not ready: the Space's environment could not be read"
            }
            Self::SystemRefused => "the browser is not ready: the system refused what it needs to start",
            Self::EndedEarly => "the browser is not ready: it ended while starting",
            Self::Overdue => "the browser is not ready: it did not answer in time when it was started",
            Self::SetUpRefused => "the browser is not ready: it did not accept its set-up",
            Self::LostAgain => "the browser is not ready: it was lost again and again",
        }
    }

    /// Whether waiting can help. Where it can't, somebody has to change the system or a setting first.
    #[must_use]
    pub const fn may_pass(self) -> bool {
        match self {
            Self::NoExecutable
            | Self::NoSandbox
            | Self::NoNetworkNamespace
            | Self::ProfileUnreachable
            | Self::ProfilePathTooLong
            | Self::RunsAsRoot
            | Self::PolicyNotUnderstood
            | Self::KindNotDriven => false,
            Self::NoUserFree
            | Self::EnvironmentUnreadable
            | Self::SystemRefused
            | Self::EndedEarly
            | Self::Overdue
            | Self::SetUpRefused
            | Self::LostAgain => true,
        }
    }
}
