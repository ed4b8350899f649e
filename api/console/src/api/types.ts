// Short names for the bodies of the API; the shapes come from docs/openapi.json (npm run types).
import type { components, operations } from "./schema";

type Schemas = components["schemas"];

export type Space = Schemas["Space"];
export type Task = Schemas["Task"];
export type TaskFailure = Schemas["TaskFailure"];
export type Instance = Schemas["Instance"];
export type Binding = Schemas["Binding"];
export type Identity = Schemas["Identity"];
export type Token = Schemas["Token"];
export type NewToken = Schemas["NewToken"];
export type Artifact = Schemas["Artifact"];
export type Capability = Schemas["Capability"];
export type RecordedEvent = Schemas["Event"];
export type ErrorCode = Schemas["ErrorCode"];
export type ErrorBody = Schemas["Error"]["error"];

export type CreateSpace = Schemas["CreateSpace"];
export type SubmitTask = Schemas["SubmitTask"];
export type RegisterInstance = Schemas["RegisterInstance"];
export type GrantBinding = Schemas["GrantBinding"];
export type IssueToken = Schemas["IssueToken"];

export type SpaceStatus = Space["status"];
export type TaskStatus = Task["status"];
export type EventKind = RecordedEvent["kind"];
export type Operation = keyof operations;

/** One page of a list. */
export interface Page<T> {
  data: T[];
  next: string | null;
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
