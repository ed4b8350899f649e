async function (checks) {
  // Which of the checks fails first: 'gone', 'visible', 'enabled', 'editable' or 'stable'; null if none.
  const element = this.nodeType === Node.ELEMENT_NODE ? this : this.parentElement;
  if (!this.isConnected || !element) return 'gone';
  const rects = () => {
    const own = [...element.getClientRects()].filter((rect) => rect.width > 0 && rect.height > 0);
    if (own.length || getComputedStyle(element).display !== 'contents') return own;
    const range = document.createRange();
    range.selectNodeContents(element);
    return [...range.getClientRects()].filter((rect) => rect.width > 0 && rect.height > 0);
  };
  const isVisible = () => {
    const style = getComputedStyle(element);
    if (style.visibility !== 'visible') return false;
    return (style.display === 'contents' || element.checkVisibility()) && rects().length > 0;
  };
  const isDisabled = () => {
    for (let at = element; at; at = at.parentElement || at.getRootNode().host) {
      if (at.getAttribute && at.getAttribute('aria-disabled') === 'true') return true;
      if (at === element && at.matches(':disabled')) return true;
    }
    return false;
  };
  const isEditable = () => {
    if (element.isContentEditable) return true;
    if (!['INPUT', 'TEXTAREA', 'SELECT'].includes(element.tagName)) return false;
    return !element.readOnly && element.getAttribute('aria-readonly') !== 'true';
  };
  const frame = () =>
    new Promise((done) => {
      const late = setTimeout(done, 300);
      requestAnimationFrame(() => {
        clearTimeout(late);
        done();
      });
    });
  if (checks.includes('visible') && !isVisible()) return 'visible';
  if (checks.includes('enabled') && isDisabled()) return 'enabled';
  if (checks.includes('editable') && !isEditable()) return 'editable';
  if (checks.includes('stable')) {
    const place = () => {
      const rect = element.getBoundingClientRect();
      return [rect.x, rect.y, rect.width, rect.height].join();
    };
    await frame();
    const first = place();
    await frame();
    if (!this.isConnected) return 'gone';
    if (place() !== first) return 'stable';
  }
  return null;
}
