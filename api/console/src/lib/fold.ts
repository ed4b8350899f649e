// A Space as it was after any of its events: the fold of its history, as far as a reader needs it.
//
// The server's own `evolve` stays the judge of what may happen; this only tells what the events say.
import type { Artifact, EventKind, RecordedEvent, SpaceStatus, TaskFailure, TaskStatus } from "../api/types";

export interface TaskView {
  taskId: string;
  requestId: string;
  capability: string;
  argKeys: string[];
  status: TaskStatus;
  cancelRequested: boolean;
  queuedAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  deadline: string | null;
  timeoutSeconds: number | null;
  result: unknown;
  error: TaskFailure | null;
  artifacts: Artifact[];
  /** Of its first and of its last event. */
  firstSequence: number;
  lastSequence: number;
}

export interface SpaceView {
  sequence: number;
  status: SpaceStatus | "absent";
  workspace: string;
  instance: string;
  ownerType: string;
  ownerId: string;
  granted: string[];
  idleTimeoutSeconds: number;
  openedAt: string | null;
  lastEventAt: string | null;
  closing: string | null;
  closedReason: string | null;
  lastErrorCode: string | null;
  generation: number | null;
  activeTaskId: string | null;
  tasks: Map<string, TaskView>;
}

export function absent(): SpaceView {
  return {
    sequence: 0, status: "absent", workspace: "", instance: "", ownerType: "", ownerId: "", granted: [], idleTimeoutSeconds: 0,
    openedAt: null, lastEventAt: null, closing: null, closedReason: null, lastErrorCode: null, generation: null, activeTaskId: null,
    tasks: new Map(),
  };
}

/** The state after the last of `events` whose sequence is at most `upTo`. */
export function fold(events: readonly RecordedEvent[], upTo = Number.POSITIVE_INFINITY): SpaceView {
  const view = absent();
  for (const event of events) {
    if (event.sequence > upTo) break;
    evolve(view, event);
  }
  return view;
}

/** A view that may be evolved without changing the one it was taken from. */
export function copied(view: SpaceView): SpaceView {
  return { ...view, tasks: new Map(view.tasks) };
}

/** Takes in one more event. */
export function evolve(view: SpaceView, event: RecordedEvent): void {
  view.sequence = event.sequence;
  view.lastEventAt = event.recorded_at;
  const task = event.task_id ? taskOf(view, event) : null;
  const payload = event.payload as Record<string, unknown>;
  switch (event.kind) {
    case "opened":
      Object.assign(view, {
        status: "idle", openedAt: event.recorded_at, workspace: text(payload.workspace_id), instance: text(payload.browser_instance_id),
        ownerType: text(payload.owner_type), ownerId: text(payload.owner_id), granted: texts(payload.granted_capabilities),
        idleTimeoutSeconds: number(payload.idle_timeout_seconds) ?? 0,
      });
      break;
    case "faulted":
      view.status = "error";
      view.lastErrorCode = text(payload.code);
      view.generation = number(payload.generation);
      break;
    case "recovered":
      view.generation = number(payload.generation);
      view.status = view.activeTaskId === null ? "idle" : "running";
      break;
    case "close_requested":
      view.closing = text(payload.reason);
      break;
    case "closed":
      view.status = "closed";
      view.closedReason = text(payload.reason);
      break;
    default:
      if (task !== null) evolveTask(view, task, event.kind, payload, event.recorded_at);
  }
}

function evolveTask(view: SpaceView, task: TaskView, kind: EventKind, payload: Record<string, unknown>, at: string): void {
  switch (kind) {
    case "queued":
      Object.assign(task, {
        requestId: text(payload.request_id), capability: text(payload.capability), argKeys: texts(payload.arg_keys),
        timeoutSeconds: number(payload.timeout_seconds), queuedAt: at,
      });
      view.activeTaskId = task.taskId;
      if (view.status === "idle") view.status = "running";
      break;
    case "started":
      task.status = "running";
      task.startedAt = at;
      task.deadline = text(payload.deadline);
      view.generation = number(payload.generation) ?? view.generation;
      break;
    case "cancel_requested":
      task.cancelRequested = true;
      break;
    case "completed":
      task.result = payload.result ?? null;
      task.artifacts = Array.isArray(payload.artifacts) ? (payload.artifacts as Artifact[]) : [];
      end(view, task, "completed", at);
      break;
    case "failed":
      task.error = (payload.error ?? null) as TaskFailure | null;
      view.lastErrorCode = task.error?.code ?? view.lastErrorCode;
      end(view, task, "failed", at);
      break;
    case "cancelled":
      end(view, task, "cancelled", at);
      break;
    default:
      break;
  }
}

function end(view: SpaceView, task: TaskView, status: TaskStatus, at: string): void {
  task.status = status;
  task.finishedAt = at;
  if (view.activeTaskId !== task.taskId) return;
  view.activeTaskId = null;
  if (view.status === "running") view.status = "idle";
}

function taskOf(view: SpaceView, event: RecordedEvent): TaskView {
  const taskId = event.task_id ?? "";
  const known = view.tasks.get(taskId);
  if (known !== undefined) {
    // A new object each time: what holds the old view keeps what it saw.
    const next = { ...known, lastSequence: event.sequence };
    view.tasks.set(taskId, next);
    return next;
  }
  const made: TaskView = {
    taskId, requestId: "", capability: "", argKeys: [], status: "queued", cancelRequested: false, queuedAt: event.recorded_at,
    startedAt: null, finishedAt: null, deadline: null, timeoutSeconds: null, result: null, error: null, artifacts: [],
    firstSequence: event.sequence, lastSequence: event.sequence,
  };
  view.tasks.set(taskId, made);
  return made;
}

const FAILURES: ReadonlySet<string> = new Set<EventKind>(["failed", "faulted", "blocked", "runtime_lost", "circuit_opened"]);

/** Whether an event tells of something that went wrong. */
export function isFailure(event: RecordedEvent): boolean {
  return FAILURES.has(event.kind);
}

/** The nearest failure before (-1) or after (+1) a sequence; null where there is none. */
export function nextFailure(events: readonly RecordedEvent[], from: number, direction: 1 | -1): number | null {
  const failures = events.filter(isFailure).map((event) => event.sequence);
  if (direction === 1) return failures.find((sequence) => sequence > from) ?? null;
  return failures.filter((sequence) => sequence < from).at(-1) ?? null;
}

export interface Picture {
  artifact: Artifact;
  sequence: number;
}

const PICTURES: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/webp"]);

export function isPicture(artifact: Artifact): boolean {
  return PICTURES.has(artifact.media_type);
}

/** Every picture that tasks made, ascending. */
export function pictures(events: readonly RecordedEvent[]): Picture[] {
  const found: Picture[] = [];
  for (const event of events) {
    if (event.kind !== "completed") continue;
    const artifacts = (event.payload as { artifacts?: unknown }).artifacts;
    if (!Array.isArray(artifacts)) continue;
    found.push(...(artifacts as Artifact[]).filter(isPicture).map((artifact) => ({ artifact, sequence: event.sequence })));
  }
  return found;
}

/** The last picture that was there at a sequence. */
export function pictureAt(all: readonly Picture[], sequence: number): Picture | null {
  return all.filter((picture) => picture.sequence <= sequence).at(-1) ?? null;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function number(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
