// The calls of the console. The token stands in the Authorization header, and nowhere else.
import { Problem } from "./problem";
import type {
  Artifact, Binding, Capability, CreateSpace, GrantBinding, Identity, Instance, IssueToken, NewToken, Page, RecordedEvent,
  RegisterInstance, Space, SpaceStatus, SubmitTask, Task, Token,
} from "./types";

const BASE = "/api/v1";

/** How long an answer may take; the server's own bound is 30 s. */
const ANSWER_TIMEOUT_MS = 40_000;

interface Ask {
  method?: "GET" | "POST";
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export class Client {
  /** The last position of the log that an answer has told of. */
  logPosition = 0;

  constructor(
    private readonly token: string,
    /** Told about each refused token. */
    private readonly onSignedOut: (problem: Problem) => void = () => {},
  ) {}

  async listSpaces(workspace: string, options: { status?: SpaceStatus | undefined; cursor?: string | null; limit?: number; signal?: AbortSignal } = {}): Promise<Page<Space>> {
    const query = queryOf({ limit: String(options.limit ?? 100), status: options.status, cursor: options.cursor });
    return this.#json(`${inWorkspace(workspace)}/browser-spaces${query}`, signalOf(options.signal));
  }

  async getSpace(workspace: string, space: string): Promise<Space> {
    return this.#data(spacePath(workspace, space));
  }

  async createSpace(workspace: string, body: CreateSpace, key: string): Promise<Space> {
    return this.#data(`${inWorkspace(workspace)}/browser-spaces`, { method: "POST", body, headers: { "Idempotency-Key": key } });
  }

  async submitTask(workspace: string, space: string, body: SubmitTask): Promise<Task> {
    return this.#data(`${spacePath(workspace, space)}/tasks`, { method: "POST", body });
  }

  async cancelTask(workspace: string, space: string): Promise<Space> {
    return this.#data(`${spacePath(workspace, space)}/cancel`, { method: "POST" });
  }

  async closeSpace(workspace: string, space: string): Promise<Space> {
    return this.#data(`${spacePath(workspace, space)}/close`, { method: "POST" });
  }

  async listInstances(): Promise<Instance[]> {
    return this.#all("/browser-instances");
  }

  async registerInstance(body: RegisterInstance): Promise<Instance> {
    return this.#data("/browser-instances", { method: "POST", body });
  }

  async retireInstance(instance: string): Promise<Instance> {
    return this.#data(`/browser-instances/${encodeURIComponent(instance)}/retire`, { method: "POST" });
  }

  async listBindings(workspace: string): Promise<Binding[]> {
    return this.#all(`${inWorkspace(workspace)}/bindings`);
  }

  async grantBinding(workspace: string, body: GrantBinding): Promise<Binding> {
    return this.#data(`${inWorkspace(workspace)}/bindings`, { method: "POST", body });
  }

  async revokeBinding(workspace: string, binding: string): Promise<Binding> {
    return this.#data(`${inWorkspace(workspace)}/bindings/${encodeURIComponent(binding)}/revoke`, { method: "POST" });
  }

  async listTokens(workspace: string): Promise<Token[]> {
    return this.#all(`${inWorkspace(workspace)}/tokens`);
  }

  async issueToken(workspace: string, body: IssueToken): Promise<NewToken> {
    return this.#data(`${inWorkspace(workspace)}/tokens`, { method: "POST", body });
  }

  async revokeToken(workspace: string, token: string): Promise<Token> {
    return this.#data(`${inWorkspace(workspace)}/tokens/${encodeURIComponent(token)}/revoke`, { method: "POST" });
  }

  /** Whose token this is. */
  async identity(): Promise<Identity> {
    return this.#data("/identity");
  }

  async listCapabilities(): Promise<Capability[]> {
    return (await this.#json<Page<Capability>>("/capabilities")).data;
  }

  async logPage(afterPosition: number, limit: number): Promise<Page<RecordedEvent>> {
    return this.#json(`/log${queryOf({ after_position: String(afterPosition), limit: String(limit) })}`);
  }

  async listArtifacts(workspace: string, space: string): Promise<Artifact[]> {
    return this.#all(`${spacePath(workspace, space)}/artifacts`);
  }

  /** The bytes of an artifact; a blob has no address of ours and can not run in our origin as a page. */
  async artifact(workspace: string, space: string, artifact: string, signal?: AbortSignal): Promise<Blob> {
    const path = `${spacePath(workspace, space)}/artifacts/${encodeURIComponent(artifact)}`;
    const response = await this.#fetch(path, signalOf(signal));
    return response.blob().catch((cause: unknown) => {
      throw Problem.noAnswer(cause);
    });
  }

  /** Opens the live view of a Space: pictures until it closes. */
  async openView(workspace: string, space: string, signal: AbortSignal): Promise<Response> {
    return this.#fetch(`${spacePath(workspace, space)}/view`, { signal });
  }

  /** Opens an event stream after `lastId`; 204 means that nothing follows. */
  async openStream(path: string, lastId: number, signal: AbortSignal): Promise<Response> {
    return this.#fetch(path, { signal, headers: { Accept: "text/event-stream", "Last-Event-ID": String(lastId) } });
  }

  async #all<T>(path: string): Promise<T[]> {
    const found: T[] = [];
    let cursor: string | null = null;
    do {
      const page: Page<T> = await this.#json(`${path}${queryOf({ limit: "100", cursor })}`);
      found.push(...page.data);
      cursor = page.next;
    } while (cursor !== null);
    return found;
  }

  async #data<T>(path: string, ask: Ask = {}): Promise<T> {
    return (await this.#json<{ data: T }>(path, ask)).data;
  }

  async #json<T>(path: string, ask: Ask = {}): Promise<T> {
    const response = await this.#fetch(path, { ...ask, signal: ask.signal ?? AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
    return response.json().catch((cause: unknown) => {
      throw Problem.noAnswer(cause);
    }) as Promise<T>;
  }

  async #fetch(path: string, ask: Ask): Promise<Response> {
    const init: RequestInit = {
      method: ask.method ?? "GET",
      headers: { ...ask.headers, Authorization: `Bearer ${this.token}`, ...(ask.body === undefined ? {} : { "Content-Type": "application/json" }) },
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      ...signalOf(ask.signal),
      ...(ask.body === undefined ? {} : { body: JSON.stringify(ask.body) }),
    };
    const response = await fetch(`${BASE}${path}`, init).catch((cause: unknown) => {
      throw Problem.noAnswer(cause);
    });
    this.logPosition = Math.max(this.logPosition, Number(response.headers.get("x-log-position") ?? 0));
    if (response.ok) return response;
    const problem = await Problem.of(response);
    if (problem.isSignedOut) this.onSignedOut(problem);
    throw problem;
  }
}

export function eventsPath(workspace: string, space: string): string {
  return `${spacePath(workspace, space)}/events`;
}

function inWorkspace(workspace: string): string {
  return `/workspaces/${encodeURIComponent(workspace)}`;
}

function spacePath(workspace: string, space: string): string {
  return `${inWorkspace(workspace)}/browser-spaces/${encodeURIComponent(space)}`;
}

function signalOf(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

function queryOf(params: Record<string, string | null | undefined>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined) query.set(name, value);
  }
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}
