// Why a call did not give what was asked: an error of the server, or no answer at all.
import type { ErrorBody } from "./types";

/** What we call it when no answer came; the server has no such code. */
export const NO_ANSWER = "no_answer";

export class Problem extends Error {
  constructor(
    /** The server's stable code, or `no_answer`. */
    readonly code: string,
    message: string,
    /** The HTTP status; 0 without an answer. */
    readonly status: number,
    readonly retryable: boolean,
    readonly details: Record<string, unknown> | null = null,
    /** Names the request in the server's log. */
    readonly requestId: string | null = null,
  ) {
    super(message);
    this.name = "Problem";
  }

  /** The token is not (or no longer) good. */
  get isSignedOut(): boolean {
    return this.status === 401;
  }

  get isDenied(): boolean {
    return this.status === 403;
  }

  get isMissing(): boolean {
    return this.status === 404;
  }

  /** Nobody knows whether the request was recorded: repeat it with the same id. */
  get isUnknownOutcome(): boolean {
    return this.code === "outcome_unknown" || this.code === NO_ANSWER;
  }

  static noAnswer(cause: unknown): Problem {
    const why = cause instanceof Error ? cause.message : String(cause);
    return new Problem(NO_ANSWER, why, 0, true);
  }

  static async of(response: Response): Promise<Problem> {
    const requestId = response.headers.get("x-request-id");
    const body: unknown = await response.json().catch(() => null);
    const error = errorOf(body);
    if (error === null) {
      return new Problem(`http_${response.status}`, response.statusText, response.status, response.status >= 500, null, requestId);
    }
    const details = (error.details ?? null) as Record<string, unknown> | null;
    return new Problem(error.code, error.message, response.status, error.retryable, details, requestId);
  }

  static from(thrown: unknown): Problem {
    return thrown instanceof Problem ? thrown : Problem.noAnswer(thrown);
  }
}

function errorOf(body: unknown): ErrorBody | null {
  const error = (body as { error?: unknown } | null)?.error as Partial<ErrorBody> | undefined;
  const isWhole = typeof error?.code === "string" && typeof error.message === "string" && typeof error.retryable === "boolean";
  return isWhole ? (error as ErrorBody) : null;
}

/** Whose turn it is when a code has come. */
export type Turn = "you" | "operator" | "wait" | "repeat";

const OPERATOR: ReadonlySet<string> = new Set(["forbidden", "unauthenticated", "corrupt_stream", "internal", "log_unavailable", "workspace_not_found"]);
const WAIT: ReadonlySet<string> = new Set([
  "browser_instance_in_use", "space_task_in_progress", "space_in_error", "runtime_not_ready", "overloaded", "rate_limited",
  "shutting_down", "runtime_crashed", "runtime_disconnected", "runtime_stopped",
]);

/** Codes that we do not know are treated by `retryable`, as the API says. */
export function turnOf(code: string, retryable: boolean): Turn {
  if (code === "outcome_unknown" || code === NO_ANSWER) return "repeat";
  if (OPERATOR.has(code)) return "operator";
  if (WAIT.has(code)) return "wait";
  return retryable ? "wait" : "you";
}
