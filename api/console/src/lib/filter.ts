// Which events of the log are shown.
import type { EventKind, RecordedEvent } from "../api/types";
import { isFailure } from "./fold";
import { shortId } from "./text";

export interface LogFilter {
  /** In the stream, task, trace, principal or Workspace; empty for all. */
  text: string;
  kind: EventKind | "";
  workspace: string;
  failuresOnly: boolean;
}

export const NO_FILTER: LogFilter = { text: "", kind: "", workspace: "", failuresOnly: false };

export function shows(filter: LogFilter, event: RecordedEvent): boolean {
  if (filter.kind !== "" && event.kind !== filter.kind) return false;
  if (filter.workspace !== "" && event.workspace_id !== filter.workspace) return false;
  if (filter.failuresOnly && !isFailure(event)) return false;
  const wanted = filter.text.trim().toLowerCase();
  return wanted === "" || haystack(event).some((place) => place.toLowerCase().includes(wanted));
}

function haystack(event: RecordedEvent): string[] {
  const { principal } = event;
  return [event.stream ?? "", event.task_id ?? "", event.trace_id, event.kind, principal.kind, principal.id ?? "", principal.token_id ?? "", event.workspace_id ?? "", JSON.stringify(event.payload)];
}

/** What an event says besides its kind, on one line; text of others is made inert where it is drawn. */
export function summary(event: RecordedEvent): string {
  const payload = event.payload as Record<string, unknown>;
  const pick = (names: string[]): string => plain(names.map((name) => payload[name]));
  switch (event.kind) {
    case "opened":
      return pick(["owner_id", "browser_instance_id"]);
    case "queued":
      return [pick(["capability"]), list(payload.arg_keys)].filter(Boolean).join(" · ");
    case "started":
      return "";
    case "completed":
      return resultLine(payload.result);
    case "failed": {
      const error = payload.error as { code?: unknown; message?: unknown } | undefined;
      return [error?.code, error?.message].filter((part) => typeof part === "string").join(": ");
    }
    case "token_issued":
      return pick(["role", "owner_id", "token_id"]);
    case "dialog_opened":
      return short(payload.dialog);
    default:
      return plain(Object.values(payload));
  }
}

function resultLine(result: unknown): string {
  if (typeof result !== "object" || result === null) return short(result);
  const { title, url, text, artifact } = result as Record<string, unknown>;
  const file = artifact as { artifact_id?: unknown; media_type?: unknown } | undefined;
  if (typeof file?.artifact_id === "string") return plain([file.artifact_id, file.media_type]);
  const parts = [title, url, text].filter((part): part is string => typeof part === "string" && part !== "");
  return parts.length > 0 ? parts.join(" · ").slice(0, 300) : short(result);
}

/** Words and numbers; of an id its end, which is the part that differs. */
function plain(values: unknown[]): string {
  return values.filter((value) => typeof value === "string" || typeof value === "number").map((value) => shortId(String(value))).join(" · ");
}

function list(value: unknown): string {
  return Array.isArray(value) ? value.join(", ") : "";
}

function short(value: unknown): string {
  return value === undefined || value === null ? "" : JSON.stringify(value).slice(0, 300);
}
