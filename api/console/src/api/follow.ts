// Follows an event stream for as long as it is wanted: reads, notices silence, comes back after the last id.
//
//   connecting ──► live ──► (cut, silence, server gone) ──► waiting ──► connecting
//        │           └────► end: complete ──► ended
//        └── refused (401, 403, 404, 422) ──► failed
import type { Client } from "./client";
import { Problem } from "./problem";
import { FrameParser } from "./sse";
import type { RecordedEvent } from "./types";

export type Link = "connecting" | "live" | "waiting" | "ended" | "failed";

export interface Following {
  onEvents(events: RecordedEvent[]): void;
  onLink(link: Link, problem: Problem | null): void;
}

/** Heartbeats come each 15 s; after so long without one the connection is taken for dead. */
const SILENCE_MS = 50_000;
const RETRY_FIRST_MS = 500;
const RETRY_MAX_MS = 10_000;

/** Which place of an event its stream's ids are. */
type Place = "sequence" | "position";

/** Follows until the returned function is called. Events come once each, ascending. */
export function follow(client: Client, path: string, place: Place, after: number, following: Following): () => void {
  const stop = new AbortController();
  void run(client, path, place, after, following, stop.signal);
  return () => stop.abort();
}

async function run(client: Client, path: string, place: Place, after: number, following: Following, stop: AbortSignal): Promise<void> {
  let lastId = after;
  let retryMs = RETRY_FIRST_MS;
  const take = (events: RecordedEvent[]): void => {
    // A repeat would show a fact twice; the server sends none, and we do not rely on it.
    const fresh = events.filter((event) => event[place] > lastId);
    lastId = fresh.at(-1)?.[place] ?? lastId;
    retryMs = RETRY_FIRST_MS;
    if (fresh.length > 0) following.onEvents(fresh);
  };
  while (!stop.aborted) {
    following.onLink("connecting", null);
    let problem: Problem | null = null;
    try {
      const isComplete = await once(client, path, lastId, stop, take, () => following.onLink("live", null));
      if (isComplete) return following.onLink("ended", null);
    } catch (thrown) {
      if (stop.aborted) return;
      problem = Problem.from(thrown);
      if (isFinal(problem)) return following.onLink("failed", problem);
    }
    if (stop.aborted) return;
    following.onLink("waiting", problem);
    await pause(retryMs, stop);
    retryMs = Math.min(retryMs * 2, RETRY_MAX_MS);
  }
}

/** Refusals that the same request will meet again. */
function isFinal(problem: Problem): boolean {
  return !problem.retryable && problem.status >= 400 && problem.status < 500;
}

/** Reads one connection to its end; whether the stream said that nothing can follow. */
async function once(client: Client, path: string, lastId: number, stop: AbortSignal, take: (events: RecordedEvent[]) => void, onLive: () => void): Promise<boolean> {
  const connection = new AbortController();
  const abort = (): void => connection.abort();
  stop.addEventListener("abort", abort, { once: true });
  let silence = setTimeout(abort, SILENCE_MS);
  try {
    const response = await client.openStream(path, lastId, connection.signal);
    if (response.status === 204 || response.body === null) return true;
    onLive();
    const parser = new FrameParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      clearTimeout(silence);
      silence = setTimeout(abort, SILENCE_MS);
      const frames = parser.push(value);
      take(frames.filter((frame) => frame.id !== null).map((frame) => JSON.parse(frame.data) as RecordedEvent));
      const end = frames.find((frame) => frame.event === "end");
      if (end !== undefined) return (JSON.parse(end.data) as { reason?: string }).reason === "complete";
    }
  } finally {
    clearTimeout(silence);
    stop.removeEventListener("abort", abort);
    connection.abort();
  }
}

function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      stop.removeEventListener("abort", done);
      resolve();
    }
    stop.addEventListener("abort", done, { once: true });
  });
}
