// Who is signed in. The token lives in memory, or in this tab's session storage where the person says so.
import { Client } from "../api/client";
import { Problem } from "../api/problem";
import type { Capability, Instance } from "../api/types";

const STORED_TOKEN = "browserspace.token";
const STORED_WORKSPACE = "browserspace.workspace";
const FIRST_WORKSPACE = "default";

/** What the token turned out to be good for. */
export interface Authority {
  /** It reads the log: an operator's or an auditor's. */
  overseer: boolean;
}

class Session {
  client = $state.raw<Client | null>(null);
  authority = $state.raw<Authority>({ overseer: false });
  workspaces = $state.raw<string[]>([]);
  workspace = $state<string>("");
  capabilities = $state.raw<Capability[]>([]);
  /** Why one is not signed in any more. */
  ended = $state.raw<Problem | null>(null);

  /** Tries a token: what it may enter, and whether it oversees. */
  async signIn(token: string, isKept: boolean, wanted: string | null): Promise<void> {
    const client = new Client(token, (problem) => this.#end(problem));
    const [instances, capabilities] = await Promise.all([client.listInstances(), client.listCapabilities()]);
    const overseer = await may(() => client.logPage(0, 1));
    const candidates = [...new Set([wanted, read(STORED_WORKSPACE), ...workspacesOf(instances), FIRST_WORKSPACE].filter((one) => one !== null && one !== ""))] as string[];
    const entered = await Promise.all(candidates.map((workspace) => may(() => client.listSpaces(workspace, { limit: 1 }))));
    this.workspaces = candidates.filter((_, index) => entered[index]);
    this.workspace = this.workspaces[0] ?? "";
    this.capabilities = capabilities;
    this.authority = { overseer };
    this.ended = null;
    this.client = client;
    if (isKept) write(STORED_TOKEN, token);
  }

  /** Enters a Workspace that no instance names. */
  async enter(workspace: string): Promise<void> {
    await this.#signedIn().listSpaces(workspace, { limit: 1 });
    if (!this.workspaces.includes(workspace)) this.workspaces = [...this.workspaces, workspace].sort();
    this.select(workspace);
  }

  /** Goes where the address says. A Workspace that nobody has entered is shown as refused, and not remembered. */
  select(workspace: string): void {
    this.workspace = workspace;
    if (this.workspaces.includes(workspace)) write(STORED_WORKSPACE, workspace);
  }

  signOut(): void {
    this.#forget();
    this.ended = null;
  }

  /** The token that this tab kept. */
  kept(): string | null {
    return read(STORED_TOKEN);
  }

  #end(problem: Problem): void {
    this.#forget();
    this.ended = problem;
  }

  #forget(): void {
    this.client = null;
    this.workspaces = [];
    this.workspace = "";
    remove(STORED_TOKEN);
  }

  #signedIn(): Client {
    if (this.client === null) throw new Error("only screens behind the sign-in ask for a Workspace");
    return this.client;
  }
}

export const session = new Session();

/** True, or false where the token may not; what is neither is thrown. */
async function may(ask: () => Promise<unknown>): Promise<boolean> {
  try {
    await ask();
    return true;
  } catch (thrown) {
    const problem = Problem.from(thrown);
    if (problem.isDenied || problem.isMissing || problem.status === 422) return false;
    throw problem;
  }
}

function workspacesOf(instances: Instance[]): string[] {
  return [...new Set(instances.flatMap((instance) => instance.workspaces))].sort();
}

// Storage may be switched off; then the token lives in memory only.
function read(name: string): string | null {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

function write(name: string, value: string): void {
  try {
    sessionStorage.setItem(name, value);
  } catch {
    // Nothing is lost but the convenience.
  }
}

function remove(name: string): void {
  try {
    sessionStorage.removeItem(name);
  } catch {
    // As above.
  }
}
