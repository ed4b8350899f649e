// Times as operators read them. Instants come from the server; only differences use this machine's clock.

export interface Clock {
  nowMs: number;
}

/** `42 s`, `3 min 5 s`, `2 h 4 min`, `3 d 1 h`; never negative. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** Short durations with their milliseconds: `12 ms`, `1.34 s`. */
export function fineDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(2)} s` : duration(ms);
}

/** The time of day with milliseconds, in this machine's zone. */
export function timeOfDay(instant: string): string {
  const date = new Date(instant);
  if (Number.isNaN(date.getTime())) return instant;
  const two = (n: number): string => String(n).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** Date and time, in this machine's zone: `2026-11-30 16:33:34`. */
export function dateTime(instant: string): string {
  const date = new Date(instant);
  if (Number.isNaN(date.getTime())) return instant;
  const two = (n: number): string => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${timeOfDay(instant).slice(0, 8)}`;
}

export function msBetween(from: string, to: string): number {
  return new Date(to).getTime() - new Date(from).getTime();
}

/** `812 B`, `34.1 KiB`. */
export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  return count < 1024 * 1024 ? `${(count / 1024).toFixed(1)} KiB` : `${(count / 1024 / 1024).toFixed(1)} MiB`;
}
