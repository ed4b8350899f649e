// Server-sent events from a `fetch` body, so that the token can stand in a header (EventSource can not send one).
// Source: HTML Living Standard, section 9.2.6 (interpreting an event stream).

export interface Frame {
  id: string | null;
  event: string;
  data: string;
}

/** Turns text, in pieces of any size, into frames. */
export class FrameParser {
  #rest = "";
  #data: string[] = [];
  #event = "";
  #id: string | null = null;

  push(text: string): Frame[] {
    const frames: Frame[] = [];
    // A piece may end between CR and LF: a CR at the very end waits for what follows.
    this.#rest += text;
    let from = 0;
    for (;;) {
      const end = this.#lineEnd(from);
      if (end === null) break;
      const frame = this.#line(this.#rest.slice(from, end.at));
      if (frame !== null) frames.push(frame);
      from = end.next;
    }
    this.#rest = this.#rest.slice(from);
    return frames;
  }

  #lineEnd(from: number): { at: number; next: number } | null {
    for (let at = from; at < this.#rest.length; at += 1) {
      const code = this.#rest.charCodeAt(at);
      if (code === 10) return { at, next: at + 1 };
      if (code === 13) {
        if (at + 1 === this.#rest.length) return null;
        return { at, next: this.#rest.charCodeAt(at + 1) === 10 ? at + 2 : at + 1 };
      }
    }
    return null;
  }

  #line(line: string): Frame | null {
    if (line === "") return this.#dispatch();
    if (line.startsWith(":")) return null;
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line.charAt(colon + 1) === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return null;
  }

  #dispatch(): Frame | null {
    const frame = { id: this.#id, event: this.#event || "message", data: this.#data.join("\n") };
    const isEmpty = this.#data.length === 0;
    this.#data = [];
    this.#event = "";
    this.#id = null;
    return isEmpty ? null : frame;
  }
}
