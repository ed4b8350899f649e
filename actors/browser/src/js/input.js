function () {
  // The field for files that this is, labels or holds; null if there is none.
  const isField = (element) => Boolean(element) && element.tagName === 'INPUT' && element.type === 'file';
  if (isField(this)) return this;
  if (this.tagName === 'LABEL' && isField(this.control)) return this.control;
  const inside = this.querySelectorAll ? this.querySelectorAll('input[type=file]') : [];
  return inside.length === 1 ? inside[0] : null;
}
