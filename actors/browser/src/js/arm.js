function (types) {
  // Counts the trusted events that reach this element.
  const seen = { count: 0 };
  const note = (event) => {
    if (event.isTrusted) seen.count += 1;
  };
  for (const type of types) this.addEventListener(type, note, { capture: true, once: true });
  return seen;
}
