import { expect, test } from "vitest";

import { cut, inert, inertLine, shortId } from "./text";

test("what can not be seen, or would reorder its neighbours, is spelled out (C12)", () => {
  expect(inert("a\u001b[31mb")).toBe("a⟨1B⟩[31mb");
  expect(inert("\u202Egnp.exe")).toBe("⟨202E⟩gnp.exe");
  expect(inert("x\u0000y\u0085z\u200bq\ufeff")).toBe("x⟨00⟩y⟨85⟩z⟨200B⟩q⟨FEFF⟩");
  expect(inert("\u{e0041}")).toBe("⟨E0041⟩");
});

test("what people write stays as it is", () => {
  for (const text of ["Grüße, 世界", "שלום", "line\nline\tend", "😀"]) expect(inert(text)).toBe(text);
});

test("one line can not become two", () => {
  expect(inertLine("a\r\nb\u2028c")).not.toMatch(/[\r\n\u2028]/);
});

test("a long text is cut between characters, and says how much is missing", () => {
  expect(cut("abc", 3)).toEqual({ text: "abc", rest: 0 });
  expect(cut("abcd", 3)).toEqual({ text: "abc", rest: 1 });
  expect(cut("ab😀", 3)).toEqual({ text: "ab", rest: 2 });
});

test("only ids of ours are shortened", () => {
  expect(shortId("spc_01m8qcfkeejjbxfr4xz74t28n")).toBe("spc_…xz74t28n");
  expect(shortId("a_perfectly_good_name_of_somebody")).toBe("a_perfectly_good_name_of_somebody");
  expect(shortId("default")).toBe("default");
});
