function (checks, px, py, presses, { force, scrolled, still }) {
  // Checks this element, tells where to press, and watches the press to come: it must find the element where it is now.
  const failed = failedOf(this, checks);
  if (failed) return { failed };
  const element = elementOf(this);
  const isAnimated = () => {
    for (let at = element; at; at = up(at)) {
      if (at.getAnimations && at.getAnimations().some((animation) => animation.playState === 'running')) return true;
    }
    return false;
  };
  const mustRest = checks.includes('stable');
  // What is being animated is watched for two frames first.
  if (mustRest && !still && isAnimated()) return { failed: 'stable' };
  const box = element.getBoundingClientRect();
  const isInView = box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
  const spot = spotOf(element, px, py);
  const covered = spot ? coverOf(element, spot.x, spot.y) : 'the edge of the view';
  if (!scrolled && (covered || !isInView)) return { scroll: true };
  if (!spot) return { x: 0, y: 0, covered };
  if (covered && !force) return { ...spot, covered };

  if (globalThis.watch) globalThis.watch.end();
  const place = placeOf(element);
  const watch = { count: 0, refused: null };
  globalThis.watch = watch;
  const listening = new AbortController();
  let frames = 0;
  let judged = false;
  let released = 0;
  const over = new Promise((done) => {
    watch.end = () => {
      listening.abort();
      done();
    };
  });
  watch.over = () => over;
  requestAnimationFrame(() => {
    frames += 1;
  });
  // The place now and the place after the next frame: what moves has moved by then.
  const judge = (event) => {
    if (force) return null;
    if (!this.isConnected) return { check: 'gone' };
    if (mustRest && (placeOf(element) !== place || (!still && frames === 0))) return { check: 'stable' };
    const by = coverOf(element, event.clientX, event.clientY);
    return by ? { check: 'receives_events', by } : null;
  };
  const guard = (event) => {
    if (!event.isTrusted) return;
    const isPress = event.type === 'pointerdown' || event.type === 'mousedown';
    if (!judged && !isPress) return;
    if (!judged) watch.refused = judge(event);
    judged = true;
    if (watch.refused) {
      event.stopImmediatePropagation();
      event.preventDefault();
    }
    if (event.type !== 'pointerup') return;
    released += 1;
    // The click comes in the same task as the release that makes it.
    if (released === presses || watch.refused) setTimeout(watch.end, 0);
  };
  const count = (event) => {
    if (event.isTrusted) watch.count += 1;
  };
  const { signal } = listening;
  const types = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'contextmenu', 'dblclick'];
  for (const type of types) {
    addEventListener(type, guard, { capture: true, signal });
    this.addEventListener(type, count, { capture: true, signal });
  }
  // A press that never comes must not leave its guard to the next one.
  setTimeout(watch.end, 10000);
  return { ...spot, covered: null };
}
