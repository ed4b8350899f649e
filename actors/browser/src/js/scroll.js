function (dx, dy, to) {
  // Scrolls what scrolls here: this element or what holds it; for a page its document, or what fills it.
  const up = (node) => node.assignedSlot || node.parentElement || (node.getRootNode() && node.getRootNode().host) || null;
  const page = document.scrollingElement || document.documentElement;
  const isVertical = to !== null || dy !== 0;
  const scrolls = (element) => {
    if (element === page) return false;
    const style = getComputedStyle(element);
    const along = (overflow, room) => ['auto', 'scroll', 'overlay', 'hidden'].includes(overflow) && room > 1;
    const down = along(style.overflowY, element.scrollHeight - element.clientHeight);
    const across = along(style.overflowX, element.scrollWidth - element.clientWidth);
    return isVertical ? down : across;
  };
  const holder = (node) => {
    for (let at = node; at; at = up(at)) if (at.nodeType === Node.ELEMENT_NODE && scrolls(at)) return at;
    return null;
  };
  let target = page;
  if (this instanceof Node) target = holder(this) || page;
  else if (isVertical ? page.scrollHeight <= innerHeight + 1 : page.scrollWidth <= innerWidth + 1) {
    target = holder(document.elementFromPoint(innerWidth / 2, innerHeight / 2)) || page;
  }
  const end = target.scrollHeight;
  if (to === 'top') target.scrollTo({ top: 0, behavior: 'instant' });
  else if (to === 'bottom') target.scrollTo({ top: end, behavior: 'instant' });
  else target.scrollBy({ left: dx, top: dy, behavior: 'instant' });
  return {
    x: target.scrollLeft,
    y: target.scrollTop,
    x_max: Math.max(0, target.scrollWidth - target.clientWidth),
    y_max: Math.max(0, target.scrollHeight - target.clientHeight),
  };
}
