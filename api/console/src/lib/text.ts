// Text that pages, agents and clients wrote is shown as what it is: inert, and unable to change the text around it.

/** Characters of one value that are shown before somebody asks for the rest. */
export const SHOWN_CHARS_MAX = 400;

// Controls but for line feed and tab; what changes direction; what is invisible; separators that end a line for some.
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Spells what can not be seen, or would reorder its neighbours: an escape becomes `⟨1B⟩`, an override `⟨202E⟩`. */
export function inert(text: string): string {
  return text.replace(UNSAFE, (found) => `⟨${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(2, "0")}⟩`);
}

/** As [`inert`], and on one line. */
export function inertLine(text: string): string {
  return inert(text).replace(/\n/g, "⏎").replace(/\t/g, "⇥");
}

export interface Cut {
  text: string;
  /** Characters that were left out. */
  rest: number;
}

/** Cuts between characters, not inside of one. */
export function cut(text: string, max: number = SHOWN_CHARS_MAX): Cut {
  if (text.length <= max) return { text, rest: 0 };
  const before = text.charCodeAt(max - 1);
  const at = before >= 0xd800 && before <= 0xdbff ? max - 1 : max;
  return { text: text.slice(0, at), rest: text.length - at };
}

/** The end of an id, which is the part that differs: `spc_…k45gergc`. */
export function shortId(id: string): string {
  const at = id.indexOf("_");
  return /^[a-z]{2,4}_[0-9a-z]{12,64}$/.test(id) ? `${id.slice(0, at + 1)}…${id.slice(-8)}` : id;
}
