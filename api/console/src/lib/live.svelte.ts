// A Space's history, as it is and as it grows: read once, shown by the detail and by the replay.
import { eventsPath, type Client } from "../api/client";
import { follow, type Link } from "../api/follow";
import type { Problem } from "../api/problem";
import type { RecordedEvent } from "../api/types";
import { absent, copied, evolve, type SpaceView } from "./fold";

/** Follows a stream while the document can be seen: a browser has few connections to one server. */
export class LiveEvents {
  events = $state.raw<RecordedEvent[]>([]);
  link = $state<Link>("connecting");
  problem = $state.raw<Problem | null>(null);
  #pending: RecordedEvent[] = [];
  #frame = 0;
  #stop: () => void = () => {};

  constructor(
    private readonly client: Client,
    private readonly path: string,
    private readonly place: "sequence" | "position",
    private readonly after: number,
    /** The oldest are dropped beyond it. */
    private readonly eventsMax: number = Number.POSITIVE_INFINITY,
  ) {}

  start(): void {
    this.#open();
    document.addEventListener("visibilitychange", this.#onVisibility);
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.#onVisibility);
    this.#stop();
    cancelAnimationFrame(this.#frame);
  }

  /** Told about events in bunches, before they show. */
  protected take(_events: RecordedEvent[]): void {}

  #onVisibility = (): void => {
    if (this.link === "ended" || this.link === "failed") return;
    this.#stop();
    if (!document.hidden) this.#open();
  };

  #open(): void {
    const lastId = this.#pending.at(-1)?.[this.place] ?? this.events.at(-1)?.[this.place] ?? this.after;
    this.#stop = follow(this.client, this.path, this.place, lastId, {
      onEvents: (events) => this.#collect(events),
      onLink: (link, problem) => {
        // What came shows before what became of the connection.
        this.#flush();
        this.link = link;
        this.problem = problem;
      },
    });
  }

  // A long history comes in thousands of frames; drawing each would freeze the page.
  #collect(events: RecordedEvent[]): void {
    this.#pending.push(...events);
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#flush());
  }

  #flush(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#pending.length === 0) return;
    const fresh = this.#pending;
    this.#pending = [];
    this.take(fresh);
    const all = [...this.events, ...fresh];
    this.events = all.length > this.eventsMax ? all.slice(all.length - this.eventsMax) : all;
  }
}

export class LiveSpace extends LiveEvents {
  view = $state.raw<SpaceView>(absent());

  constructor(client: Client, workspace: string, space: string) {
    super(client, eventsPath(workspace, space), "sequence", 0);
  }

  protected override take(events: RecordedEvent[]): void {
    const view = copied(this.view);
    for (const event of events) evolve(view, event);
    this.view = view;
  }
}
