// Ids that the console makes up: of a submit, or of a create, so that a repeat is known as one.

export function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return `console-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
