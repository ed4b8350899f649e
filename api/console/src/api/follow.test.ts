import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { Client } from "./client";
import { follow, type Link } from "./follow";
import { Problem } from "./problem";
import type { RecordedEvent } from "./types";

/** A connection: what it says, and whether it breaks after that. */
type Connection = { frames: string[]; breaks?: boolean } | Problem | 204;

function event(sequence: number): string {
  return `id: ${sequence}\ndata: ${JSON.stringify({ sequence, position: sequence + 100 })}\n\n`;
}

/** A server that gives one connection after the other, and notes what it was asked. */
function server(connections: Connection[]): { client: Client; asked: number[] } {
  const asked: number[] = [];
  const client = {
    openStream: async (_path: string, lastId: number): Promise<Response> => {
      asked.push(lastId);
      const next = connections.shift();
      if (next === undefined) return new Promise(() => {});
      if (next instanceof Problem) throw next;
      if (next === 204) return new Response(null, { status: 204 });
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const frame of next.frames) controller.enqueue(new TextEncoder().encode(frame));
          if (next.breaks) controller.error(new Error("cut"));
          else controller.close();
        },
      });
      return new Response(body);
    },
  };
  return { client: client as unknown as Client, asked };
}

async function run(connections: Connection[]): Promise<{ events: number[]; links: Link[]; asked: number[] }> {
  const { client, asked } = server(connections);
  const events: number[] = [];
  const links: Link[] = [];
  const stop = follow(client, "/events", "sequence", 0, {
    onEvents: (fresh: RecordedEvent[]) => events.push(...fresh.map((one) => one.sequence)),
    onLink: (link) => links.push(link),
  });
  await vi.advanceTimersByTimeAsync(60_000);
  stop();
  return { events, links, asked };
}

describe("following a stream", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("comes back after the last id, and shows nothing twice", async () => {
    const complete = 'event: end\ndata: {"reason":"complete","last_id":4}\n\n';
    const { events, links, asked } = await run([{ frames: [event(1), event(2)] }, { frames: [event(2), event(3), event(4), complete] }]);
    expect(events).toEqual([1, 2, 3, 4]);
    expect(asked).toEqual([0, 2]);
    expect(links).toEqual(["connecting", "live", "waiting", "connecting", "live", "ended"]);
  });

  test("a server that is stopping is waited for, and is no end", async () => {
    const stopping = 'event: end\ndata: {"reason":"server_stopping","last_id":1}\n\n';
    const { links, asked } = await run([{ frames: [event(1), stopping] }, Problem.noAnswer("refused"), 204]);
    expect(asked).toEqual([0, 1, 1]);
    expect(links.at(-1)).toBe("ended");
  });

  test("a refusal that will not change is final", async () => {
    const { links, asked } = await run([new Problem("forbidden", "no", 403, false)]);
    expect(links).toEqual(["connecting", "failed"]);
    expect(asked).toEqual([0]);
  });

  test("a refusal that may pass is asked again, less and less often", async () => {
    const busy = new Problem("overloaded", "busy", 503, true);
    const { asked } = await run([busy, busy, busy, busy, busy, busy, busy, busy, busy, busy]);
    expect(asked.length).toBeGreaterThan(4);
    expect(asked.length).toBeLessThan(11);
  });
});
