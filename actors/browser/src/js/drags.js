function (isOver) {
  // Hears, from the first call to the last, whether the page lets a native drag begin.
  if (!isOver) {
    const listening = new AbortController();
    const hearing = { started: false, end: () => listening.abort() };
    if (globalThis.hearing) globalThis.hearing.end();
    globalThis.hearing = hearing;
    const hear = (event) => setTimeout(() => (hearing.started = !event.defaultPrevented), 0);
    addEventListener('dragstart', hear, { capture: true, signal: listening.signal });
    return false;
  }
  // The event comes within the task of the move that makes it; its listeners have had their turn by then.
  return new Promise((done) =>
    setTimeout(() => setTimeout(() => {
      const hearing = globalThis.hearing;
      if (hearing) hearing.end();
      done(Boolean(hearing && hearing.started));
    }, 0), 0),
  );
}
