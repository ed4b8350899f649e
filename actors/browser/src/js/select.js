function (values, isTrial) {
  // Chooses these options of a select, or tells why not; on trial only the latter.
  const element = (this.tagName === 'LABEL' && this.control) || this;
  if (element.tagName !== 'SELECT') return { refused: 'kind' };
  if (!element.multiple && values.length > 1) return { refused: 'single' };
  const plain = (text) => text.replace(/\s+/g, ' ').trim();
  const options = [...element.options];
  const chosen = new Set();
  for (const value of values) {
    const option =
      options.find((option) => option.value === value) || options.find((option) => plain(option.label) === plain(value));
    if (!option) return { refused: 'missing', among: options.slice(0, 20).map((option) => plain(option.label)) };
    const group = option.closest('optgroup');
    if (option.disabled || (group && group.disabled)) return { refused: 'disabled' };
    chosen.add(option);
  }
  if (isTrial) return {};
  element.focus();
  if (element.multiple) for (const option of options) option.selected = chosen.has(option);
  else [...chosen][0].selected = true;
  element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  element.dispatchEvent(new Event('change', { bubbles: true }));
  return { selected: [...element.selectedOptions].map((option) => ({ value: option.value, label: plain(option.label) })) };
}
