import { describe, expect, test } from "vitest";

import type { RecordedEvent, Space } from "../api/types";
import { en } from "../strings/en";
import { zh } from "../strings/zh";
import { NO_FILTER, shows, summary } from "./filter";
import { format, parse, type Route } from "./route";
import { merged } from "./spaces.svelte";
import { bytes, duration, fineDuration } from "./time";
import { windowOf } from "./window";
import { words } from "./words";

describe("an address", () => {
  const routes: Route[] = [
    { screen: "spaces" }, { screen: "create", instance: null }, { screen: "create", instance: "ins_1" }, { screen: "space", space: "spc_1" },
    { screen: "replay", space: "spc_1", at: 12 }, { screen: "replay", space: "spc_1", at: null }, { screen: "log", at: 3 }, { screen: "log", at: null },
    { screen: "instances" }, { screen: "bindings" }, { screen: "tokens" },
  ];
  test.each(routes)("of $screen leads back to it", (route) => {
    expect(parse(format("a b/c", route))).toEqual({ workspace: "a b/c", route });
  });

  test("that leads nowhere says so, and a bad place is none", () => {
    expect(parse("#/w/default/nothing").route).toEqual({ screen: "nowhere" });
    expect(parse("#/elsewhere").route).toEqual({ screen: "nowhere" });
    expect(parse("#/w/default/log?at=-1").route).toEqual({ screen: "log", at: null });
    expect(parse("#/w/%E0%A4%A/spaces").route).toEqual({ screen: "spaces" });
    expect(parse("")).toEqual({ workspace: null, route: { screen: "spaces" } });
  });
});

test("a window draws what is seen and a little more, however long the list", () => {
  expect(windowOf(10_000, 40, 0, 400)).toEqual({ first: 0, end: 18, offsetPx: 0, totalPx: 400_000 });
  expect(windowOf(10_000, 40, 200_000, 400)).toMatchObject({ first: 4992, end: 5018 });
  expect(windowOf(3, 40, 99_999, 400)).toMatchObject({ end: 3 });
  expect(windowOf(0, 40, 0, 400)).toEqual({ first: 0, end: 0, offsetPx: 0, totalPx: 0 });
});

test("a Space is listed once, as at its highest revision, newest first", () => {
  const space = (space_id: string, revision: number, created_at: string): Space => ({ space_id, revision, created_at }) as Space;
  const known = [space("spc_b", 3, "2026-01-02"), space("spc_a", 5, "2026-01-01")];
  const fresh = [space("spc_a", 4, "2026-01-01"), space("spc_b", 4, "2026-01-02"), space("spc_c", 1, "2026-01-03")];
  expect(merged(known, fresh).map((one) => [one.space_id, one.revision])).toEqual([["spc_c", 1], ["spc_b", 4], ["spc_a", 5]]);
});

describe("the filter of the log", () => {
  const event = { sequence: 1, position: 9, stream: "space/spc_1", workspace_id: "team", kind: "failed", task_id: "tsk_1", payload: { error: { code: "tab_closed", message: "gone" } }, principal: { kind: "operator", id: "Ann" }, recorded_at: "", trace_id: "abc" } as unknown as RecordedEvent;
  test("finds an event by what it says and by who led to it", () => {
    for (const text of ["SPC_1", "tsk_1", "ann", "abc", "tab_closed", " team "]) expect(shows({ ...NO_FILTER, text }, event), text).toBe(true);
    expect(shows({ ...NO_FILTER, text: "nothing" }, event)).toBe(false);
  });
  test("holds only what was asked for", () => {
    expect(shows({ ...NO_FILTER, failuresOnly: true, kind: "failed", workspace: "team" }, event)).toBe(true);
    expect(shows({ ...NO_FILTER, workspace: "other" }, event)).toBe(false);
    expect(shows({ ...NO_FILTER, kind: "queued" }, event)).toBe(false);
    expect(summary(event)).toBe("tab_closed: gone");
  });
});

test("durations are read at a glance, and are never negative", () => {
  expect([-5, 999, 61_000, 3_700_000, 200_000_000].map(duration)).toEqual(["0 s", "0 s", "1 min 1 s", "1 h 1 min", "2 d 7 h"]);
  expect([4.4, 1340].map(fineDuration)).toEqual(["4 ms", "1.34 s"]);
  expect([812, 34_900].map(bytes)).toEqual(["812 B", "34.1 KiB"]);
});

test("names may be typed with commas, spaces or lines between them", () => {
  expect(words(" a, b\nc a,, ")).toEqual(["a", "b", "c"]);
});

test("both languages have every text, and none is empty", () => {
  const texts = (table: object, path: string): [string, unknown][] => Object.entries(table).flatMap(([name, value]) => (typeof value === "object" ? texts(value as object, `${path}${name}.`) : [[path + name, value] as [string, unknown]]));
  const names = texts(en, "").map(([name]) => name);
  expect(texts(zh, "").map(([name]) => name).sort()).toEqual([...names].sort());
  for (const [name, value] of [...texts(en, ""), ...texts(zh, "")]) expect(value, name).not.toBe("");
});
