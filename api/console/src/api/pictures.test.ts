import { describe, expect, test } from "vitest";

import { PictureParser } from "./pictures";

const part = (bytes: string): string => `--frame\r\nContent-Type: image/jpeg\r\nContent-Length: ${bytes.length}\r\nX-Tab: t1\r\n\r\n${bytes}\r\n`;
const bytes = (text: string): Uint8Array => Uint8Array.from(text, (letter) => letter.charCodeAt(0));
const text = (picture: Uint8Array): string => String.fromCharCode(...picture);

describe("the parser of live views", () => {
  test("gives the same pictures however the bytes are cut", () => {
    const stream = `${part("\xff\xd8one\r\n\r\n--frame\r\n")}${part("")}${part("\xff\xd8two")}--frame--\r\n`;
    for (let size = 1; size < 40; size += 1) {
      const parser = new PictureParser();
      const pictures = [];
      for (let at = 0; at < stream.length; at += size) pictures.push(...parser.push(bytes(stream.slice(at, at + size))));
      expect(pictures.map(text), `pieces of ${size}`).toEqual(["\xff\xd8one\r\n\r\n--frame\r\n", "", "\xff\xd8two"]);
      expect(parser.isOver).toBe(true);
    }
  });

  test("keeps a picture until it is whole, and refuses what has no length", () => {
    const parser = new PictureParser();
    expect(parser.push(bytes(part("abc").slice(0, -1)))).toEqual([]);
    expect(parser.push(bytes("\n")).map(text)).toEqual(["abc"]);
    expect(parser.isOver).toBe(false);
    expect(() => new PictureParser().push(bytes("--frame\r\nContent-Type: image/jpeg\r\n\r\nx"))).toThrow(TypeError);
    expect(() => new PictureParser().push(bytes("x".repeat(2000)))).toThrow(TypeError);
  });
});
