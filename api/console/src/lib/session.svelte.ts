// Who is signed in. The token lives in memory, or in this tab's session storage where the person says so.
import { Client } from "../api/client";
import { Problem } from "../api/problem";
import type { Capability, Identity } from "../api/types";

const STORED_TOKEN = "browserspace.token";
const STORED_WORKSPACE = "browserspace.workspace";
const FIRST_WORKSPACE = "default";

/** What a role may do, as the server says it. */
export type Permission = Identity["may"][number];

class Session {
  client = $state.raw<Client | null>(null);
  /** Who it is, as the server says it. */
  identity = $state.raw<Identity | null>(null);
  workspaces = $state.raw<string[]>([]);
  workspace = $state<string>("");
  capabilities = $state.raw<Capability[]>([]);
  /** Why one is not signed in any more. */
  ended = $state.raw<Problem | null>(null);

  /** Tries a token: whose it is, and where it may go. */
  async signIn(token: string, isKept: boolean, wanted: string | null): Promise<void> {
    const client = new Client(token, (problem) => this.#end(problem));
    const [identity, capabilities] = await Promise.all([client.identity(), client.listCapabilities()]);
    this.workspaces = identity.workspaces;
    this.workspace = [wanted, read(STORED_WORKSPACE), FIRST_WORKSPACE].find((one) => one !== null && this.workspaces.includes(one)) ?? this.workspaces[0] ?? "";
    this.capabilities = capabilities;
    this.identity = identity;
    this.ended = null;
    this.client = client;
    if (isKept) write(STORED_TOKEN, token);
  }

  /** Whether the role may do this: what it may not is not offered. */
  may(act: Permission): boolean {
    return this.identity?.may.includes(act) ?? false;
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
    this.identity = null;
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
