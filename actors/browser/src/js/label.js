function () {
  // The label to press where this field itself is not to be seen, as pages do that draw their own; null if it is.
  const element = elementOf(this);
  const box = element.getBoundingClientRect();
  if (isVisible(element) && box.width >= 4 && box.height >= 4) return null;
  return [...(element.labels || [])].find((label) => isVisible(label)) || null;
}
