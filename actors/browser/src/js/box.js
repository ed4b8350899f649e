function () {
  if (!this.isConnected) return null;
  const rect = this.getBoundingClientRect();
  return { x: rect.x + scrollX, y: rect.y + scrollY, width: rect.width, height: rect.height };
}
