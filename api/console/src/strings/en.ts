// Every text of the console. `zh.ts` has the same shape; a missing one does not compile.

export const en = {
  product: "browserspace",
  nav: { label: "Screens", spaces: "Spaces", log: "Log", instances: "Instances", bindings: "Bindings", tokens: "Tokens", api: "API" },
  top: {
    workspace: "Workspace", other: "Other Workspace…", otherName: "Name of the Workspace", enter: "Enter", signOut: "Sign out", theme: "Theme", language: "Language",
    themes: { system: "As the system", light: "Light", dark: "Dark" }, skip: "Skip to the content", menu: "Settings",
  },
  signIn: {
    title: "Sign in", token: "Token", hint: "A token of this server begins with bst_. The first operator's is in the data folder, in operator.token.",
    keep: "Keep it until this tab is closed", keepHint: "Otherwise it is forgotten at the next reload. It is never put into an address.",
    submit: "Sign in", trying: "Asking the server…", show: "Show", hide: "Hide", ended: "You were signed out: the token is unknown, expired or revoked.",
    empty: "Enter a token.", noWorkspace: "This token enters no Workspace that the console knows of. Name the one that it is for.",
  },
  common: {
    loading: "Loading…", retry: "Try again", cancel: "Back", copy: "Copy", copied: "Copied", more: (n: number) => `Show ${n} more characters`, less: "Show less",
    all: "All", id: "Id", created: "Created", close: "Close this message", unknownPlace: "There is no such screen.",
    toSpaces: "To the Spaces", ago: (age: string) => `${age} ago`, optional: "optional", required: "required", loadMore: "Load more",
  },
  link: {
    connecting: "Connecting…", live: "Live", waiting: "Disconnected. Trying again…", ended: "Complete: nothing follows", failed: "Not followed", polling: "Asked every 3 seconds",
  },
  problem: {
    title: "The server refused", noAnswer: "No answer from the server", denied: "You may not see this", retryable: "The same request may succeed later",
    notRetryable: "The same request will not succeed", request: "Request", details: "Details",
    turns: {
      you: "Yours: change what the message names, then ask again.",
      operator: "An operator's: your token or the server needs a change first.",
      wait: "Nobody's yet: it may succeed by itself; wait, then ask again.",
      repeat: "Yours: nobody knows whether it was recorded. Send it again with the same id; it is not done twice.",
    },
    mayHaveRun: "The browser may have seen the step", notRun: "The browser has not seen the step", denialHint: "Ask an operator for a token with the role that this needs.",
    inUse: "Another Space holds this browser. A browser is never shared: take another instance, or wait until that Space is closed.",
  },
  spaces: {
    title: "Spaces", create: "Open a Space", empty: "No Space yet.", emptyHint: "A Space gives its owner one browser, exclusively. Open one on a free instance.",
    noneFound: "No Space fits these filters.", filter: "Owner, id, instance or error", status: "Status", owner: "Owner", instance: "Instance", task: "Current task", age: "Age", last: "Last event",
    count: (shown: number, isAll: boolean) => shown === 1 && isAll ? "1 Space" : `${shown}${isAll ? "" : "+"} Spaces`, cancelling: "cancelling", waitingFor: (d: string) => `queued for ${d}`, runningFor: (d: string) => `running for ${d}`,
    list: "List of Spaces", error: "Last error",
  },
  status: { idle: "idle", running: "running", error: "error", closed: "closed", absent: "not there", queued: "queued", completed: "completed", failed: "failed", cancelled: "cancelled", starting: "starting", ready: "ready", unavailable: "unavailable", retired: "retired" },
  roles: { operator: "Operator", runtime_agent: "Agent", auditor: "Auditor", system: "The server" },
  create: {
    title: "Open a Space", instance: "Browser instance", binding: "By which right", byWorkspace: "The instance names this Workspace", owner: "Owner", ownerType: "Kind of owner", ownerHint: "As in the owner's token. An agent may only name itself.",
    capabilities: "Granted capabilities", capabilitiesHint: "Its tasks may invoke these and nothing else.", idle: "Close when unused for (seconds)", submit: "Open the Space", busy: "Opening…",
    reserved: "in use", noInstances: "No instance that this Workspace may reserve.", noInstancesHint: "An operator registers one, or binds one to this Workspace.", selectAll: "All", selectNone: "None", noneGranted: "Grant at least one capability.", ownerMissing: "Name the owner.",
  },
  space: {
    title: "Space", replay: "Replay", close: "Close the Space", cancelTask: "Cancel the task", timeline: "Timeline", tasks: "Tasks", noTask: "No task is queued or running.", current: "Current task",
    closeAsk: "Close this Space?", closeText: "A running task is cancelled first. The browser ends, what it holds (pages, logins) is gone, and its instance becomes free. This can not be undone.", closeYes: "Close the Space",
    cancelAsk: "Cancel this task?", cancelText: "The task ends once the browser has acknowledged; what it has already done on the page stays done.", cancelYes: "Cancel the task", keep: "Leave it as it is",
    cancelRequested: "Cancel requested; waiting for the browser to acknowledge.", closing: "Closing: the browser is being ended.", closed: (reason: string) => `This Space is closed (${reason}). Its history stays.`, inError: "The browser is being restarted; the Space becomes idle again by itself.",
    deadline: "Deadline", remaining: (d: string) => `${d} left`, overdue: (d: string) => `${d} past its deadline: it is being stopped`, queued: "Queued", started: "Started", ended: "Ended", took: "Took", args: "Args (names only)", noArgs: "none", result: "Result", details: "Details of the result", error: "Error", pictures: "Pictures", files: "Files",
    run: "Run a task", capability: "Capability", timeout: "Timeout (seconds)", submit: "Submit", submitting: "Submitting…", example: "Fill in the example", again: "Send again with the same id",
    submitted: "Accepted:", noTasks: "No task yet.", lastError: "Last error", idleClose: "Closed when unused for", events: (n: number) => (n === 1 ? "1 event" : `${n} events`), save: "Save",
    waitFor: "A task is queued or running; the next one can be submitted when it has ended.", argsHint: "Args are sealed, never shown again, and can not be recovered when the task has ended.",
    pictureAlt: (id: string) => `Picture ${id}`,
  },
  liveView: {
    title: "Live view", start: "Watch", stop: "Stop watching", again: "Watch again", waiting: "Waiting for the first picture…", alt: "What the browser shows now",
    hint: "Shows what the browser shows. To look only: clicks and keys do not reach the page. The browser draws for it only while you watch.", cut: "The picture has stopped: the connection or the Space has ended.",
  },
  fault: {
    required: "This is required.", too_short: "Too short.", too_long: "Too long.", pattern: "Not in the form that is asked for.", no_number: "Not a number.", no_integer: "Not a whole number.", too_small: "Too small.", too_large: "Too large.", no_json: "Not JSON.", too_many: "Too many.",
  },
  form: { standard: (v: string) => `Default: ${v}`, pattern: (p: string) => `Form: ${p}`, range: (a: string, b: string) => `${a} to ${b}`, leave: "(default)", json: "JSON" },
  replay: {
    title: "Replay", scrub: "Sequence", first: "First", previous: "Previous", next: "Next", last: "Last", nextFailure: "Next failure", previousFailure: "Previous failure", noFailures: "No failure in this history.", failures: (n: number) => (n === 1 ? "1 failure" : `${n} failures`),
    copy: "Copy a link to this sequence", state: (n: number) => `State at sequence ${n}`, picture: "Screenshot of that moment", pictureFrom: (n: number, age: string) => `taken at sequence ${n}, ${age} before`, noPicture: "No screenshot was taken up to here.", events: "Events", event: "The event",
    back: "To the Space", position: (at: number, of: number) => `${at} of ${of}`, keys: "Arrow keys step, Home and End jump.",
  },
  log: {
    title: "Log", filter: "Stream, task, trace, owner or text", kind: "Kind", workspace: "Workspace", failures: "Failures only", from: "After position", go: "Go", empty: "Nothing fits these filters yet.", record: "The full record", none: "Choose an event to see its full record.", events: "Events",
    pause: "Pause", resume: "Go on", paused: (n: number) => `Paused; ${n} new`, denied: "The log is for operators and auditors.", newest: "From the newest", shown: (n: number, of: number) => `${n} of ${of} read`, chain: "Chain hash", chainHint: "Not told by the API of this version; it lies in the log's segments.", noTrace: "none: no request led to it", dropped: (n: number) => `Older ones are not kept here; go to a position to see them (${n} kept).`,
  },
  event: { sequence: "Sequence", position: "Position", stream: "Stream", workspace: "Workspace", task: "Task", kind: "Kind", recorded: "Recorded", principal: "Principal", token: "Token", trace: "Trace id", payload: "Payload" },
  instances: {
    title: "Instances", empty: "No instance that your Workspaces may reserve.", health: "Health", reserved: "In use", free: "free", name: "Name", kind: "Kind", bundle: "Bundle", workspaces: "Workspaces", policy: "Network policy", policyNone: "none", policyHint: "Enforced by the instance's wall: what is not allowed fails at once and is recorded as blocked.", open: "Open a Space", retire: "Retire", retireAsk: "Retire this instance?", retireText: "It takes no new Space, and the Space that holds it is closed. This can not be undone.", retireYes: "Retire the instance", register: "Register an instance", submit: "Register", workspacesHint: "Names, separated by commas. Empty: your own.", allow: "Allow", deny: "Deny", hosts: "host or host:port, separated by commas", headless: "Headless", role: "Operators register and retire. Agents and auditors see the instances of their Workspaces.", trustedHint: "trusted adds evaluate; the server must allow it.", noOne: "none of yours",
  },
  bindings: {
    title: "Bindings", empty: "No binding.", emptyHint: "A binding lets this Workspace (or one owner in it) reserve an instance that does not name it.", grant: "Grant a binding", submit: "Grant", instance: "Instance", owner: "Only this owner", ownerAny: "any owner", capabilities: "Only these capabilities", capabilitiesAny: "all of the bundle", capabilitiesHint: "Separated by commas. Empty: all.", revoke: "Revoke", revoked: "revoked", active: "active", revokeAsk: "Revoke this binding?", revokeText: "No new Space can be opened by it. Open Spaces keep what they hold.", revokeYes: "Revoke the binding", role: "Operators grant and revoke. Agents and auditors only see them.",
  },
  tokens: {
    title: "Tokens", empty: "No token in this Workspace.", issue: "Issue a token", submit: "Issue", role: "Role", owner: "Owner", ownerHint: "Who its bearer is.", all: "Enters every Workspace", expires: "Ends at", expiresHint: "Empty: never by itself.", never: "never", revoke: "Revoke", revoked: "revoked", expired: "expired", active: "active", revokeAsk: "Revoke this token?", revokeText: "It is refused at once, and open event streams of it end. If it is the one that you are signed in with, you are signed out.", revokeYes: "Revoke the token", scope: "Scope", everyWorkspace: "every Workspace", thisWorkspace: "this Workspace",
    shownOnce: "This is the token. It is shown this once and kept nowhere: copy it now.", done: "I have it", rolesTitle: "What each role may do",
    roleText: { runtime_agent: "Opens and uses Spaces of its own owner id, and sees nothing else.", operator: "Acts on every Space of its Workspaces; registers and retires instances, grants bindings, issues and revokes tokens; reads the log.", auditor: "Reads every Space of its Workspaces, their tokens and the log; changes nothing." }, denied: "Tokens are for operators and auditors.", role_: "Operators issue and revoke; auditors read.",
  },
};

export type Strings = typeof en;
