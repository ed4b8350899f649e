// The Spaces of a Workspace, newest first, as they change: pages as they are scrolled to, and each Space that the log
// tells about asked for again. Who may not read the log asks every few seconds.
import type { Client } from "../api/client";
import { follow, type Link } from "../api/follow";
import { Problem } from "../api/problem";
import type { RecordedEvent, Space, SpaceStatus } from "../api/types";

const PAGE_SPACES = 100;
const POLL_MS = 3_000;
/** Changes of one Space within so long are one question. */
const SETTLE_MS = 150;

export class SpaceList {
  spaces = $state.raw<Space[]>([]);
  isWhole = $state(false);
  isLoading = $state(true);
  problem = $state.raw<Problem | null>(null);
  link = $state<Link | "polling">("connecting");
  #next: string | null = null;
  #stop = new AbortController();
  #unfollow: () => void = () => {};
  #changed = new Set<string>();
  #settle: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly client: Client,
    private readonly workspace: string,
    private readonly status: SpaceStatus | undefined,
    private readonly overseer: boolean,
  ) {}

  async start(): Promise<void> {
    await this.loadMore();
    if (this.#stop.signal.aborted || this.problem !== null) return;
    if (this.overseer) this.#follow();
    else this.#poll();
  }

  stop(): void {
    this.#stop.abort();
    this.#unfollow();
    clearTimeout(this.#settle);
  }

  /** The next page; does nothing while one is under way or when all are here. */
  async loadMore(): Promise<void> {
    if (this.isWhole || (this.isLoading && this.spaces.length > 0)) return;
    this.isLoading = true;
    try {
      const page = await this.client.listSpaces(this.workspace, { status: this.status, cursor: this.#next, limit: PAGE_SPACES, signal: this.#stop.signal });
      this.spaces = merged(this.spaces, page.data);
      this.#next = page.next;
      this.isWhole = page.next === null;
      this.problem = null;
    } catch (thrown) {
      if (!this.#stop.signal.aborted) this.problem = Problem.from(thrown);
    } finally {
      this.isLoading = false;
    }
  }

  #follow(): void {
    // From what the first page has taken into account: nothing between the two is missed.
    this.#unfollow = follow(this.client, "/log", "position", this.client.logPosition, {
      onEvents: (events) => this.#note(events),
      onLink: (link) => {
        this.link = link;
      },
    });
  }

  #note(events: RecordedEvent[]): void {
    for (const event of events) {
      const [kind, id] = (event.stream ?? "").split("/");
      if (kind === "space" && id !== undefined && event.workspace_id === this.workspace) this.#changed.add(id);
    }
    if (this.#changed.size > 0 && this.#settle === undefined) this.#settle = setTimeout(() => void this.#refresh(), SETTLE_MS);
  }

  async #refresh(): Promise<void> {
    this.#settle = undefined;
    const ids = [...this.#changed];
    this.#changed.clear();
    // Many at once are asked for as a page: one question instead of hundreds.
    if (ids.length > 10) return this.#refreshPage();
    const found = await Promise.all(ids.map((id) => this.client.getSpace(this.workspace, id).catch(() => null)));
    this.#take(found.filter((space) => space !== null));
  }

  async #refreshPage(): Promise<void> {
    try {
      const page = await this.client.listSpaces(this.workspace, { status: this.status, limit: PAGE_SPACES, signal: this.#stop.signal });
      this.#take(page.data);
      this.link = this.overseer ? this.link : "polling";
    } catch {
      if (!this.overseer) this.link = "waiting";
    }
  }

  #take(fresh: Space[]): void {
    if (this.#stop.signal.aborted) return;
    const fits = (space: Space): boolean => this.status === undefined || space.status === this.status;
    const gone = new Set(fresh.filter((space) => !fits(space)).map((space) => space.space_id));
    this.spaces = merged(this.spaces.filter((space) => !gone.has(space.space_id)), fresh.filter(fits));
  }

  #poll(): void {
    this.link = "polling";
    const timer = setInterval(() => {
      if (!document.hidden) void this.#refreshPage();
    }, POLL_MS);
    this.#stop.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  }
}

/** Both lists, each Space once and as it was at its highest revision, newest first. */
export function merged(known: readonly Space[], fresh: readonly Space[]): Space[] {
  const byId = new Map(known.map((space) => [space.space_id, space]));
  for (const space of fresh) {
    const old = byId.get(space.space_id);
    if (old === undefined || space.revision >= old.revision) byId.set(space.space_id, space);
  }
  return [...byId.values()].sort((a, b) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : a.space_id < b.space_id ? 1 : -1));
}
