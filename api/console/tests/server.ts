// A real server for a test: its own data folder and port, ended by its own pid.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 20_000;

/** `BROWSERSPACE_BIN`, else what was built last. */
function program(): string {
  const target = process.env.CARGO_TARGET_DIR ?? resolve(import.meta.dirname, "../../../target");
  const candidates = [process.env.BROWSERSPACE_BIN, join(target, "debug/browserspace"), join(target, "release/browserspace")];
  const found = candidates.find((path) => path !== undefined && existsSync(path));
  if (found === undefined) throw new Error("build the program first (cargo build -p api --bins), or name it in BROWSERSPACE_BIN");
  return found;
}

interface Answer<T> {
  data: T;
  error?: { code: string; message: string };
}

export class Server {
  url = "";
  operator = "";
  #child: ChildProcess | null = null;

  private constructor(readonly folder: string, private readonly flags: string[]) {}

  static async start(flags: string[] = []): Promise<Server> {
    const folder = await mkdtemp(join(tmpdir(), "browserspace-console-"));
    // Browsers run as users of their own, who must be able to pass.
    await chmod(folder, 0o755);
    const server = new Server(folder, flags);
    await server.run("127.0.0.1:0").catch(async (failure: unknown) => {
      await server.stop();
      throw failure;
    });
    server.operator = (await readFile(join(folder, "data/operator.token"), "utf8")).trim();
    return server;
  }

  /** Starts the program on its folder, again where it ran before. */
  async run(listen: string): Promise<void> {
    const child = spawn(program(), ["serve", "--data-dir", join(this.folder, "data"), "--listen", listen, "--allow-scripted-runtime", ...this.flags], { stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    let text = "";
    this.url = await new Promise((found, failed) => {
      const timer = setTimeout(() => failed(new Error(`the server did not start:\n${text}`)), START_TIMEOUT_MS);
      const read = (chunk: Buffer): void => {
        text += chunk.toString();
        const match = /listening on (http:\/\/[0-9.:]+)/.exec(text);
        if (match?.[1] === undefined) return;
        clearTimeout(timer);
        found(match[1]);
      };
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.once("exit", (code) => failed(new Error(`the server ended with ${code}:\n${text}`)));
    });
  }

  /** As after a crash: its Spaces stay open. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async stop(): Promise<void> {
    await this.#end("SIGTERM");
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((done) => child.once("exit", () => done()));
    child.kill(signal);
    const late = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await ended;
    clearTimeout(late);
  }

  async get<T>(path: string, token = this.operator): Promise<T> {
    return this.#call("GET", path, undefined, token);
  }

  async post<T>(path: string, body: unknown = {}, token = this.operator, headers: Record<string, string> = {}): Promise<T> {
    return this.#call("POST", path, body, token, headers);
  }

  async #call<T>(method: string, path: string, body: unknown, token: string, headers: Record<string, string> = {}): Promise<T> {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method, headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", ...headers }, ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as Answer<T>;
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer.error)}`);
    return answer.data;
  }

  /** A token of the Workspace `default`. */
  async token(role: "runtime_agent" | "operator" | "auditor", owner: string, workspace = "default"): Promise<string> {
    return (await this.post<{ token: string }>(`/workspaces/${workspace}/tokens`, { role, owner_id: owner })).token;
  }

  /** An instance that plays a script: quick, and without a browser. */
  async scripted(name?: string): Promise<string> {
    const body = { kind: "scripted", workspaces: ["default"], ...(name === undefined ? {} : { name }) };
    return (await this.post<{ browser_instance_id: string }>("/browser-instances", body)).browser_instance_id;
  }

  /** A Chromium that reaches these pages of this machine, and nothing else of it. */
  async chromium(pages: string): Promise<string> {
    const body = { kind: "chromium", workspaces: ["default"], network_policy: { allow: [new URL(pages).host] } };
    return (await this.post<{ browser_instance_id: string }>("/browser-instances", body)).browser_instance_id;
  }

  async space(instance: string, owner = "operator", granted = ["navigate", "snapshot", "screenshot", "click", "wait", "get_title"]): Promise<string> {
    const body = { browser_instance_id: instance, owner_type: "operator", owner_id: owner, granted_capabilities: granted };
    return (await this.post<{ space_id: string }>("/workspaces/default/browser-spaces", body)).space_id;
  }

  async task<T = { status: string }>(space: string, capability: string, args: object, wait = 30): Promise<T> {
    const body = { request_id: `t-${Math.random().toString(36).slice(2)}`, capability, args };
    return this.post(`/workspaces/default/browser-spaces/${space}/tasks`, body, this.operator, { Prefer: `wait=${wait}` });
  }
}
