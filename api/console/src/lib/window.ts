// Which rows of a long list are drawn: all rows are equally high, so it is arithmetic.

export interface Window {
  first: number;
  /** One past the last. */
  end: number;
  /** Where the first drawn row begins, and how high the whole list is. */
  offsetPx: number;
  totalPx: number;
}

/** Rows above and below what is seen, so that scrolling shows no gap. */
const MARGIN_ROWS = 8;

export function windowOf(count: number, rowPx: number, scrollPx: number, viewPx: number): Window {
  const seen = Math.floor(Math.max(0, scrollPx) / rowPx);
  const first = Math.max(0, Math.min(seen, count) - MARGIN_ROWS);
  const end = Math.min(count, seen + Math.ceil(viewPx / rowPx) + MARGIN_ROWS);
  return { first, end: Math.max(first, end), offsetPx: first * rowPx, totalPx: count * rowPx };
}
