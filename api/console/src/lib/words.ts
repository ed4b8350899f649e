/** Names that were typed with commas, spaces or lines between them; each once. */
export function words(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((word) => word !== ""))];
}
