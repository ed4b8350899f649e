async function (waits) {
  // What became of the press that was watched: the events that reached the element, or why it was kept from it.
  const watch = globalThis.watch;
  if (!watch) return { count: 0, refused: null };
  if (waits) await watch.over();
  watch.end();
  return { count: watch.count, refused: watch.refused };
}
