import { describe, expect, test } from "vitest";

import { FrameParser } from "./sse";

const STREAM = ': heartbeat\n\nid: 7\ndata: {"a":1}\n\nid:8\r\ndata: one\r\ndata: two\r\n\r\nevent: end\ndata: {}\n\n';

describe("the parser of event streams", () => {
  test("gives the same frames however the text is cut", () => {
    const whole = new FrameParser().push(STREAM);
    expect(whole).toEqual([
      { id: "7", event: "message", data: '{"a":1}' },
      { id: "8", event: "message", data: "one\ntwo" },
      { id: null, event: "end", data: "{}" },
    ]);
    for (let size = 1; size < 12; size += 1) {
      const parser = new FrameParser();
      const frames = [];
      for (let at = 0; at < STREAM.length; at += size) frames.push(...parser.push(STREAM.slice(at, at + size)));
      expect(frames, `pieces of ${size}`).toEqual(whole);
    }
  });

  test("keeps what is not whole yet, and a heartbeat is no frame", () => {
    const parser = new FrameParser();
    expect(parser.push(": heartbeat\n\nid: 1\ndata: x\n")).toEqual([]);
    expect(parser.push("\n")).toEqual([{ id: "1", event: "message", data: "x" }]);
  });

  test("an id holds for its own frame only", () => {
    expect(new FrameParser().push("id: 1\ndata: a\n\ndata: b\n\n").map((frame) => frame.id)).toEqual(["1", null]);
  });
});
