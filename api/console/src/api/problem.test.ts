import { expect, test } from "vitest";

import { NO_ANSWER, Problem, turnOf } from "./problem";

test("a refusal keeps its code, its advice and the id of the request", async () => {
  const body = { data: null, error: { code: "browser_instance_in_use", message: "held", retryable: true, details: { browser_instance_id: "ins_1" } } };
  const problem = await Problem.of(new Response(JSON.stringify(body), { status: 409, headers: { "x-request-id": "req_1" } }));
  expect(problem).toMatchObject({ code: "browser_instance_in_use", message: "held", status: 409, retryable: true, requestId: "req_1", details: { browser_instance_id: "ins_1" } });
});

test("an answer of something in between is told by its status", async () => {
  const problem = await Problem.of(new Response("<h1>Bad gateway</h1>", { status: 502 }));
  expect(problem).toMatchObject({ code: "http_502", retryable: true });
});

test("whose turn it is follows the code, and for a code of tomorrow the advice", () => {
  expect(turnOf("space_task_in_progress", true)).toBe("wait");
  expect(turnOf("invalid_args", false)).toBe("you");
  expect(turnOf("forbidden", false)).toBe("operator");
  expect(turnOf(NO_ANSWER, true)).toBe("repeat");
  expect(turnOf("outcome_unknown", true)).toBe("repeat");
  expect(turnOf("a_code_of_tomorrow", true)).toBe("wait");
  expect(turnOf("a_code_of_tomorrow", false)).toBe("you");
});
