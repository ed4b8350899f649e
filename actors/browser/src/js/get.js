function (what, name, chars) {
  // One thing of this element: its text, value, attribute, place in its frame's view, or states.
  const element = elementOf(this);
  if (!this.isConnected || !element) return { gone: true };
  const bounded = (text) => {
    if (text === null || text === undefined) return { value: null };
    const all = [...String(text)];
    return { value: all.slice(0, chars).join(''), length: all.length };
  };
  const field = (element.tagName === 'LABEL' && element.control) || element;
  switch (what) {
    case 'text': {
      if (this.nodeType === Node.TEXT_NODE) return bounded(this.data);
      return bounded(element.innerText === undefined ? element.textContent : element.innerText);
    }
    case 'value': {
      if (field.tagName === 'SELECT' && field.multiple) {
        return { value: [...field.selectedOptions].slice(0, 100).map((option) => option.value.slice(0, 200)) };
      }
      if (field.isContentEditable) return bounded(field.innerText);
      return 'value' in field && typeof field.value !== 'object' ? bounded(field.value) : { refused: true };
    }
    case 'attribute': return bounded(element.getAttribute(name));
    case 'box': {
      const box = element.getBoundingClientRect();
      return { value: { x: box.x, y: box.y, width: box.width, height: box.height } };
    }
    default: {
      const box = element.getBoundingClientRect();
      const root = element.getRootNode();
      const aria = field.getAttribute('aria-checked');
      const isBox = field.tagName === 'INPUT' && ['checkbox', 'radio'].includes(field.type);
      const states = {
        visible: isVisible(element),
        enabled: !isDisabled(field),
        editable: isEditable(field) && !isDisabled(field),
        focused: root.activeElement === element,
        in_view: box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth,
      };
      if (isBox || aria !== null) states.checked = isBox ? field.checked : aria === 'true';
      if (field.tagName === 'OPTION') states.selected = field.selected;
      const expanded = element.getAttribute('aria-expanded');
      if (expanded !== null) states.expanded = expanded === 'true';
      return { value: states };
    }
  }
}
