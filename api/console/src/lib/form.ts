// A form out of a capability's JSON schema, and args out of the form. The server stays the judge of the args; what is
// refused here is only what it would certainly refuse, told beside the field.
import type { Json } from "../api/types";

export type Control =
  | { kind: "text"; minLength: number; maxLength: number | null; pattern: string | null; isLong: boolean }
  | { kind: "number"; isInteger: boolean; minimum: number | null; maximum: number | null }
  | { kind: "switch" }
  | { kind: "choice"; choices: Choice[] }
  | { kind: "choices"; choices: Choice[]; maxItems: number | null }
  | { kind: "json" };

export interface Choice {
  value: string;
  description: string;
}

export interface Field {
  name: string;
  description: string;
  isRequired: boolean;
  /** Shown as what happens when the field is left empty. */
  standard: Json | undefined;
  control: Control;
}

/** What stands in a field: text for most, a truth value for a switch, words for choices. */
export type Value = string | boolean | string[];
export type Values = Record<string, Value>;

/** Why a field's value is no arg; the words for it stand with the strings. */
export type Fault = "required" | "too_short" | "too_long" | "pattern" | "no_number" | "no_integer" | "too_small" | "too_large" | "no_json" | "too_many";

type Schema = Record<string, unknown>;

/** A text that may be longer than this gets more than one line. */
const LINE_CHARS_MAX = 500;

export function fieldsOf(schema: unknown): Field[] {
  const root = asSchema(schema);
  const required = new Set(Array.isArray(root.required) ? (root.required as string[]) : []);
  const fields = Object.entries(asSchema(root.properties)).map(([name, property]) => fieldOf(name, asSchema(property), required.has(name)));
  return fields.sort((a, b) => Number(b.isRequired) - Number(a.isRequired));
}

export function emptyValues(fields: Field[]): Values {
  return Object.fromEntries(fields.map((field) => [field.name, emptyValue(field)]));
}

function emptyValue(field: Field): Value {
  if (field.control.kind === "switch") return field.standard === true;
  return field.control.kind === "choices" ? [] : "";
}

/** The args, or what is wrong by field. A field left empty is left out, so that the server's own default holds. */
export function argsOf(fields: Field[], values: Values): { args: Record<string, Json>; faults: Record<string, Fault> } {
  const args: Record<string, Json> = {};
  const faults: Record<string, Fault> = {};
  for (const field of fields) {
    const read = readField(field, values[field.name] ?? emptyValue(field));
    if (read.fault !== undefined) faults[field.name] = read.fault;
    else if (read.arg !== undefined) args[field.name] = read.arg;
  }
  return { args, faults };
}

/** Example args as values of the form. */
export function valuesOf(fields: Field[], args: Record<string, unknown>): Values {
  const values = emptyValues(fields);
  for (const field of fields) {
    const arg = args[field.name];
    if (arg === undefined || arg === null) continue;
    if (field.control.kind === "switch") values[field.name] = arg === true;
    else if (field.control.kind === "choices") values[field.name] = Array.isArray(arg) ? arg.map(String) : [];
    else values[field.name] = typeof arg === "string" ? arg : JSON.stringify(arg);
  }
  return values;
}

interface Read {
  arg?: Json;
  fault?: Fault;
}

function readField(field: Field, value: Value): Read {
  const control = field.control;
  switch (control.kind) {
    case "switch":
      // What the server takes anyway is not sent.
      return value === (field.standard === true) && !field.isRequired ? {} : { arg: value === true };
    case "choices": {
      const chosen = Array.isArray(value) ? value : [];
      if (control.maxItems !== null && chosen.length > control.maxItems) return { fault: "too_many" };
      return chosen.length === 0 && !field.isRequired ? {} : { arg: chosen };
    }
    default:
      return readText(field, control, typeof value === "string" ? value : "");
  }
}

function readText(field: Field, control: Exclude<Control, { kind: "switch" | "choices" }>, value: string): Read {
  // An empty text is an arg of its own where one must be given and it may be empty (fill: clears a field).
  const isEmptyText = control.kind === "text" && field.isRequired && control.minLength === 0 && (control.pattern === null || matches(control.pattern, ""));
  if (value === "" && !isEmptyText) return field.isRequired ? { fault: "required" } : {};
  switch (control.kind) {
    case "text":
      return readLine(control, value);
    case "number":
      return readNumber(control, value);
    case "choice":
      return { arg: value };
    case "json":
      try {
        return { arg: JSON.parse(value) as Json };
      } catch {
        return { fault: "no_json" };
      }
  }
}

function readLine(control: Extract<Control, { kind: "text" }>, value: string): Read {
  // JSON Schema counts characters, not UTF-16 units.
  const length = [...value].length;
  if (length < control.minLength) return { fault: "too_short" };
  if (control.maxLength !== null && length > control.maxLength) return { fault: "too_long" };
  if (control.pattern !== null && !matches(control.pattern, value)) return { fault: "pattern" };
  return { arg: value };
}

function matches(pattern: string, value: string): boolean {
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true;
  }
}

function readNumber(control: Extract<Control, { kind: "number" }>, value: string): Read {
  const number = Number(value);
  if (value.trim() === "" || !Number.isFinite(number)) return { fault: "no_number" };
  if (control.isInteger && !Number.isInteger(number)) return { fault: "no_integer" };
  if (control.minimum !== null && number < control.minimum) return { fault: "too_small" };
  if (control.maximum !== null && number > control.maximum) return { fault: "too_large" };
  return { arg: number };
}

function fieldOf(name: string, schema: Schema, isRequired: boolean): Field {
  const standard = schema.default as Json | undefined;
  const description = typeof schema.description === "string" ? schema.description : "";
  return { name, description, isRequired, standard: standard === null ? undefined : standard, control: controlOf(schema) };
}

function controlOf(schema: Schema): Control {
  const choices = choicesOf(schema);
  if (choices !== null) return { kind: "choice", choices };
  const type = typeOf(schema);
  if (type === "boolean") return { kind: "switch" };
  if (type === "integer" || type === "number") {
    return { kind: "number", isInteger: type === "integer", minimum: numberOf(schema.minimum), maximum: numberOf(schema.maximum) };
  }
  if (type === "string") {
    const maxLength = numberOf(schema.maxLength);
    const pattern = typeof schema.pattern === "string" ? schema.pattern : null;
    const isLong = pattern === null && (maxLength ?? 0) > LINE_CHARS_MAX && schema.minLength === undefined;
    return { kind: "text", minLength: numberOf(schema.minLength) ?? 0, maxLength, pattern, isLong };
  }
  if (type === "array") {
    const items = choicesOf(asSchema(schema.items));
    if (items !== null) return { kind: "choices", choices: items, maxItems: numberOf(schema.maxItems) };
  }
  return { kind: "json" };
}

/** The words of an `enum`, or of a `oneOf` of constants; null where it is neither. */
function choicesOf(schema: Schema): Choice[] | null {
  if (Array.isArray(schema.enum) && schema.enum.every((one) => typeof one === "string" || one === null)) {
    return schema.enum.filter((one) => one !== null).map((one) => ({ value: one as string, description: "" }));
  }
  const branches = [schema.oneOf, schema.anyOf].find(Array.isArray) as unknown[] | undefined;
  if (branches === undefined) return null;
  const named = branches.map(asSchema).filter((branch) => branch.type !== "null");
  const flat = named.flatMap((branch) => {
    if (typeof branch.const === "string") return [{ value: branch.const, description: String(branch.description ?? "") }];
    return choicesOf(branch) ?? [null];
  });
  return flat.every((choice) => choice !== null) && flat.length > 0 ? (flat as Choice[]) : null;
}

function typeOf(schema: Schema): string | null {
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((type) => type !== "null");
    return types.length === 1 ? String(types[0]) : null;
  }
  return typeof schema.type === "string" ? schema.type : null;
}

function asSchema(value: unknown): Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Schema) : {};
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}
