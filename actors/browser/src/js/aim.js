function (px, py) {
  // Where to point at this element, in its frame's viewport, and what is in the way.
  const element = elementOf(this);
  if (!this.isConnected || !element) return { gone: true };
  const spot = spotOf(element, px, py);
  if (!spot) return { x: 0, y: 0, covered: 'the edge of the view' };
  return { ...spot, covered: coverOf(element, spot.x, spot.y) };
}
