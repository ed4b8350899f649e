  // What our functions know of an element; stands in front of each that asks for it.
  const elementOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement);
  const up = (node) => node.assignedSlot || node.parentElement || (node.getRootNode() && node.getRootNode().host) || null;
  const rectsOf = (element) => {
    const own = [...element.getClientRects()].filter((rect) => rect.width > 0 && rect.height > 0);
    if (own.length || getComputedStyle(element).display !== 'contents') return own;
    const range = document.createRange();
    range.selectNodeContents(element);
    return [...range.getClientRects()].filter((rect) => rect.width > 0 && rect.height > 0);
  };
  const isVisible = (element) => {
    const style = getComputedStyle(element);
    if (style.visibility !== 'visible') return false;
    return (style.display === 'contents' || element.checkVisibility()) && rectsOf(element).length > 0;
  };
  const isDisabled = (element) => {
    for (let at = element; at; at = at.parentElement || at.getRootNode().host) {
      if (at.getAttribute && at.getAttribute('aria-disabled') === 'true') return true;
      if (at === element && at.matches(':disabled')) return true;
    }
    return false;
  };
  const isEditable = (element) => {
    if (element.isContentEditable) return true;
    if (!['INPUT', 'TEXTAREA', 'SELECT'].includes(element.tagName)) return false;
    return !element.readOnly && element.getAttribute('aria-readonly') !== 'true';
  };
  // Which of the checks that need no time fails first; null if none.
  const failedOf = (node, checks) => {
    const element = elementOf(node);
    if (!node.isConnected || !element) return 'gone';
    if (checks.includes('visible') && !isVisible(element)) return 'visible';
    if (checks.includes('enabled') && isDisabled(element)) return 'enabled';
    if (checks.includes('editable') && !isEditable(element)) return 'editable';
    return null;
  };
  const placeOf = (element) => {
    const rect = element.getBoundingClientRect();
    return [rect.x, rect.y, rect.width, rect.height].join();
  };
  // Where to point at the element, in its frame's viewport; null if no part of it is in view.
  const spotOf = (element, px, py) => {
    const inView = (x, y) => (x < 0 || y < 0 || x > innerWidth || y > innerHeight ? null : { x, y });
    if (px !== null) {
      const box = element.getBoundingClientRect();
      return inView(box.left + px, box.top + py);
    }
    let rects = [...element.getClientRects()];
    if (!rects.length) {
      const range = document.createRange();
      range.selectNodeContents(element);
      rects = [...range.getClientRects()];
    }
    for (const rect of rects) {
      const left = Math.max(rect.left, 0);
      const right = Math.min(rect.right, innerWidth);
      const top = Math.max(rect.top, 0);
      const bottom = Math.min(rect.bottom, innerHeight);
      if (right - left > 0.5 && bottom - top > 0.5) return inView((left + right) / 2, (top + bottom) / 2);
    }
    return null;
  };
  const within = (node, target) => {
    for (let at = node; at; at = up(at)) if (at === target) return true;
    return false;
  };
  const nameOf = (node) => {
    const id = node.id ? '#' + node.id : '';
    const kind = typeof node.className === 'string' ? node.className.trim().split(/\s+/)[0] : '';
    return (node.localName + id + (kind ? '.' + kind : '')).slice(0, 80);
  };
  // What is in the way of a press at this point; null if it would reach the element.
  const coverOf = (element, x, y) => {
    // From the element's own tree outwards: a walk from the document inwards stops at a closed shadow root.
    let target = element;
    for (let root = element.getRootNode(); root; ) {
      const hit = root.elementFromPoint(x, y);
      const label = hit && hit.closest && hit.closest('label');
      const reaches = hit && (within(hit, target) || (label && label.control === target));
      // Slotted text belongs to the host's tree: what is hit is then the host itself, which the next round checks.
      const isHost = hit && root.host && hit === root.host;
      if (!reaches && !isHost) return hit ? nameOf(hit) : 'nothing of the page';
      target = root.host;
      root = target ? target.getRootNode() : null;
    }
    return null;
  };
