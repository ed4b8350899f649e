import { describe, expect, test } from "vitest";

import { argsOf, emptyValues, fieldsOf, valuesOf } from "./form";

const SCHEMA = {
  type: "object",
  required: ["ref", "text"],
  properties: {
    depth: { type: ["integer", "null"], minimum: 0, maximum: 100, default: null },
    ref: { type: "string", pattern: "^e[1-9][0-9]{0,6}$" },
    text: { type: "string", maxLength: 5 },
    wait: { oneOf: [{ type: "string", const: "load", description: "Loaded." }, { type: "string", const: "none" }] },
    full: { type: "boolean", default: false },
    strict: { type: "boolean", default: true },
    modifiers: { type: "array", maxItems: 1, items: { oneOf: [{ const: "Alt" }, { const: "Shift" }] } },
    ref_state: { type: ["object", "null"], properties: {} },
  },
};

describe("the form of a schema", () => {
  const fields = fieldsOf(SCHEMA);
  const faultsOf = (values: object): object => argsOf(fields, { ...emptyValues(fields), ref: "e1", ...values }).faults;

  test("has what is required first, and a control by type", () => {
    expect(fields.slice(0, 2).map((field) => field.name)).toEqual(["ref", "text"]);
    expect(Object.fromEntries(fields.map((field) => [field.name, field.control.kind]))).toEqual({ ref: "text", text: "text", depth: "number", wait: "choice", full: "switch", strict: "switch", modifiers: "choices", ref_state: "json" });
  });

  test("leaves out what is empty or as by default, so that the server's default holds", () => {
    expect(argsOf(fields, { ...emptyValues(fields), ref: "e1" })).toEqual({ args: { ref: "e1", text: "" }, faults: {} });
    expect(argsOf(fields, { ...emptyValues(fields), ref: "e1", full: true, strict: false, depth: "3", modifiers: ["Alt"], wait: "load" }).args).toEqual({ ref: "e1", text: "", full: true, strict: false, depth: 3, modifiers: ["Alt"], wait: "load" });
  });

  test("says what the server would certainly refuse", () => {
    expect(argsOf(fields, emptyValues(fields)).faults).toEqual({ ref: "required" });
    expect(faultsOf({ ref: "x" })).toEqual({ ref: "pattern" });
    expect(faultsOf({ text: "longer" })).toEqual({ text: "too_long" });
    expect(faultsOf({ depth: "1.5" })).toEqual({ depth: "no_integer" });
    expect(faultsOf({ depth: "101" })).toEqual({ depth: "too_large" });
    expect(faultsOf({ depth: "-1" })).toEqual({ depth: "too_small" });
    expect(faultsOf({ depth: "many" })).toEqual({ depth: "no_number" });
    expect(faultsOf({ ref_state: "{" })).toEqual({ ref_state: "no_json" });
    expect(faultsOf({ modifiers: ["Alt", "Shift"] })).toEqual({ modifiers: "too_many" });
  });

  test("counts characters as JSON Schema does", () => {
    expect(faultsOf({ text: "😀😀😀😀😀" })).toEqual({});
    expect(faultsOf({ text: "😀😀😀😀😀😀" })).toEqual({ text: "too_long" });
  });

  test("takes an example and gives it back", () => {
    const example = { ref: "e4", text: "tea", depth: 2, full: true, modifiers: ["Shift"], ref_state: { ref: "e1" } };
    expect(argsOf(fields, valuesOf(fields, example))).toEqual({ args: example, faults: {} });
  });

  test("of something that is no schema is empty", () => {
    for (const bad of [null, undefined, 3, "x", [], { properties: null }]) expect(fieldsOf(bad)).toEqual([]);
  });
});
