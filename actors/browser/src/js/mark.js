function (isNamed) {
  // Where this element is in its frame's view, to be framed in a picture; null if it can not be seen there.
  const element = elementOf(this);
  if (!this.isConnected || !element) return { gone: true };
  if (!isVisible(element)) return {};
  const box = element.getBoundingClientRect();
  const spot = spotOf(element, null, null);
  // What is covered can not be acted on; it is framed only if it was asked for.
  if (!isNamed && spot && coverOf(element, spot.x, spot.y)) return {};
  return { area: { x: box.x, y: box.y, width: box.width, height: box.height } };
}
