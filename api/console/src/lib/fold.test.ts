import { describe, expect, test } from "vitest";

import type { EventKind, RecordedEvent } from "../api/types";
import { copied, evolve, fold, nextFailure, pictureAt, pictures } from "./fold";

function events(...kinds: [EventKind, object?][]): RecordedEvent[] {
  return kinds.map(([kind, payload = {}], index) => ({
    sequence: index + 1, position: index + 10, kind, payload: payload as Record<string, never>, principal: { kind: "system" },
    recorded_at: `2026-01-01T00:00:${String(index).padStart(2, "0")}Z`, trace_id: "0", ...(TASKS.has(kind) ? { task_id: "tsk_1" } : {}),
  }));
}

const TASKS: ReadonlySet<EventKind> = new Set<EventKind>(["queued", "started", "completed", "failed", "cancelled", "cancel_requested"]);
const OPENED: [EventKind, object] = ["opened", { owner_id: "agent", browser_instance_id: "ins_1", granted_capabilities: ["navigate"], idle_timeout_seconds: 60 }];
const QUEUED: [EventKind, object] = ["queued", { capability: "screenshot", arg_keys: ["full_page"], request_id: "r", timeout_seconds: 5 }];
const artifact = { artifact_id: "art_1", kind: "screenshot", media_type: "image/png", bytes: 1, sha256: "00", task_id: "tsk_1", created_at: "2026-01-01T00:00:03Z" };

describe("a Space at a sequence", () => {
  const history = events(OPENED, QUEUED, ["started", { deadline: "2026-01-01T00:01:00Z", generation: 1 }], ["completed", { result: { ok: 1 }, artifacts: [artifact] }], ["close_requested", { reason: "requested" }], ["closed", { reason: "requested" }]);

  test("is as its events up to there say", () => {
    expect(history.map((event) => fold(history, event.sequence).status)).toEqual(["idle", "running", "running", "idle", "idle", "closed"]);
    const running = fold(history, 3);
    expect(running.activeTaskId).toBe("tsk_1");
    expect(running.tasks.get("tsk_1")).toMatchObject({ status: "running", capability: "screenshot", argKeys: ["full_page"], deadline: "2026-01-01T00:01:00Z" });
    expect(fold(history).tasks.get("tsk_1")).toMatchObject({ status: "completed", result: { ok: 1 }, lastSequence: 4 });
    expect(fold(history).closedReason).toBe("requested");
  });

  test("before its first event is absent", () => {
    expect(fold(history, 0).status).toBe("absent");
    expect(fold([]).status).toBe("absent");
  });

  test("of a copy leaves the original as it was", () => {
    const before = fold(history, 3);
    const after = copied(before);
    for (const event of history.slice(3)) evolve(after, event);
    expect(before.status).toBe("running");
    expect(before.tasks.get("tsk_1")?.status).toBe("running");
    expect(after.tasks.get("tsk_1")?.status).toBe("completed");
  });

  test("has the picture of that moment, not a later one", () => {
    const all = pictures(history);
    expect(pictureAt(all, 3)).toBeNull();
    expect(pictureAt(all, 4)?.artifact.artifact_id).toBe("art_1");
    expect(pictureAt(all, 6)?.sequence).toBe(4);
  });
});

test("a cancel that was asked for shows until the task has ended", () => {
  const history = events(OPENED, QUEUED, ["started"], ["cancel_requested", { reason: "requested" }], ["cancelled"]);
  expect(fold(history, 4).tasks.get("tsk_1")).toMatchObject({ status: "running", cancelRequested: true });
  expect(fold(history, 4).status).toBe("running");
  expect(fold(history, 5)).toMatchObject({ status: "idle", activeTaskId: null });
});

test("a browser that was lost and came back leaves the Space idle, with the code of the failure", () => {
  const history = events(OPENED, QUEUED, ["started"], ["failed", { error: { code: "runtime_crashed", message: "", retryable: true, may_have_run: true } }], ["faulted", { code: "runtime_crashed", generation: 1 }], ["recovered", { generation: 2 }]);
  expect(fold(history, 5).status).toBe("error");
  expect(fold(history, 6)).toMatchObject({ status: "idle", lastErrorCode: "runtime_crashed", generation: 2 });
});

test("failures are found in both directions, and none beyond the last", () => {
  const history = events(OPENED, QUEUED, ["failed", { error: { code: "x" } }], ["faulted"], ["recovered"]);
  expect(nextFailure(history, 1, 1)).toBe(3);
  expect(nextFailure(history, 3, 1)).toBe(4);
  expect(nextFailure(history, 4, 1)).toBeNull();
  expect(nextFailure(history, 5, -1)).toBe(4);
  expect(nextFailure(history, 3, -1)).toBeNull();
});

test("an event of tomorrow changes the sequence, and nothing else", () => {
  const history = events(OPENED, ["a_kind_of_tomorrow" as EventKind]);
  expect(fold(history)).toMatchObject({ sequence: 2, status: "idle" });
});
