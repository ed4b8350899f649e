// The pictures of a live view: parts of one answer, each with its length (multipart/x-mixed-replace, RFC 2046 section 5.1.1).

/** The most that a head or a picture may hold; beyond it this is not our server. */
const HEAD_BYTES_MAX = 1024;
const PICTURE_BYTES_MAX = 8 * 1024 * 1024;

/** Turns bytes, in pieces of any size, into pictures. */
export class PictureParser {
  #rest = new Uint8Array(0);
  /** Nothing can follow. */
  isOver = false;

  push(piece: Uint8Array): Uint8Array<ArrayBuffer>[] {
    this.#rest = joined(this.#rest, piece);
    const pictures: Uint8Array<ArrayBuffer>[] = [];
    for (;;) {
      const head = this.#head();
      if (head === null || this.#rest.length < head.end + head.length + 2) return pictures;
      pictures.push(this.#rest.slice(head.end, head.end + head.length));
      this.#rest = this.#rest.slice(head.end + head.length + 2);
    }
  }

  #head(): { end: number; length: number } | null {
    const text = new TextDecoder("latin1").decode(this.#rest.subarray(0, HEAD_BYTES_MAX));
    if (text.startsWith("--frame--")) this.isOver = true;
    const end = text.indexOf("\r\n\r\n");
    if (end < 0) {
      if (text.length === HEAD_BYTES_MAX) throw new TypeError("a part without a head");
      return null;
    }
    const length = Number(/^content-length: (\d+)$/im.exec(text.slice(0, end))?.[1] ?? NaN);
    if (!(length <= PICTURE_BYTES_MAX)) throw new TypeError("a part without a length");
    return { end: end + 4, length };
  }
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
