function (x, y) {
  // From a point in the frame that this element shows to a point in this element's own frame.
  if (!this.isConnected) return { gone: true };
  for (let at = this; at; at = at.parentElement || at.getRootNode().host) {
    const style = getComputedStyle(at);
    if (style.transform === 'none' && style.rotate === 'none') continue;
    const matrix = new DOMMatrixReadOnly(style.transform);
    const isTurned = Math.abs(matrix.b) > 1e-6 || Math.abs(matrix.c) > 1e-6 || !matrix.is2D || style.rotate !== 'none';
    if (isTurned) return { x: 0, y: 0, covered: 'a frame that is turned' };
  }
  const box = this.getBoundingClientRect();
  const style = getComputedStyle(this);
  const scaleX = this.offsetWidth ? box.width / this.offsetWidth : 1;
  const scaleY = this.offsetHeight ? box.height / this.offsetHeight : 1;
  const outerX = box.left + (this.clientLeft + parseFloat(style.paddingLeft) + x) * scaleX;
  const outerY = box.top + (this.clientTop + parseFloat(style.paddingTop) + y) * scaleY;
  const outside = outerX < 0 || outerY < 0 || outerX > innerWidth || outerY > innerHeight;
  if (outside) return { x: outerX, y: outerY, covered: 'the edge of the view' };
  let target = this;
  for (let root = this.getRootNode(); root; ) {
    const hit = root.elementFromPoint(outerX, outerY);
    if (hit !== target) {
      const id = hit && hit.id ? '#' + hit.id : '';
      return { x: outerX, y: outerY, covered: hit ? (hit.localName + id).slice(0, 80) : 'nothing of the page' };
    }
    target = root.host;
    root = target ? target.getRootNode() : null;
  }
  return { x: outerX, y: outerY, covered: null };
}
