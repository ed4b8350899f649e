function (px, py) {
  // Where to point at this element, in its frame's viewport, and what is in the way.
  const element = this.nodeType === Node.ELEMENT_NODE ? this : this.parentElement;
  if (!this.isConnected || !element) return { gone: true };
  const width = innerWidth;
  const height = innerHeight;
  let x;
  let y;
  if (px !== null) {
    const box = element.getBoundingClientRect();
    x = box.left + px;
    y = box.top + py;
  } else {
    let rects = [...element.getClientRects()];
    if (!rects.length) {
      const range = document.createRange();
      range.selectNodeContents(element);
      rects = [...range.getClientRects()];
    }
    for (const rect of rects) {
      const left = Math.max(rect.left, 0);
      const right = Math.min(rect.right, width);
      const top = Math.max(rect.top, 0);
      const bottom = Math.min(rect.bottom, height);
      if (right - left > 0.5 && bottom - top > 0.5) {
        x = (left + right) / 2;
        y = (top + bottom) / 2;
        break;
      }
    }
  }
  if (x === undefined || x < 0 || y < 0 || x > width || y > height) return { x: 0, y: 0, covered: 'the edge of the view' };
  const name = (node) => {
    const id = node.id ? '#' + node.id : '';
    const kind = typeof node.className === 'string' ? node.className.trim().split(/\s+/)[0] : '';
    return (node.localName + id + (kind ? '.' + kind : '')).slice(0, 80);
  };
  const up = (node) => node.assignedSlot || node.parentElement || (node.getRootNode() && node.getRootNode().host) || null;
  const within = (node, target) => {
    for (let at = node; at; at = up(at)) if (at === target) return true;
    return false;
  };
  // From the element's own tree outwards: a walk from the document inwards stops at a closed shadow root.
  let target = element;
  for (let root = element.getRootNode(); root; ) {
    const hit = root.elementFromPoint(x, y);
    const label = hit && hit.closest && hit.closest('label');
    const reaches = hit && (within(hit, target) || (label && label.control === target));
    // Slotted text belongs to the host's tree: what is hit is then the host itself, which the next round checks.
    const isHost = hit && root.host && hit === root.host;
    if (!reaches && !isHost) return { x, y, covered: hit ? name(hit) : 'nothing of the page' };
    target = root.host;
    root = target ? target.getRootNode() : null;
  }
  return { x, y, covered: null };
}
