function (text) {
  // Makes this field ready to be filled by keyboard, or fills it where a keyboard cannot.
  const element = this;
  const kind = element.tagName === 'INPUT' ? element.type : '';
  const hints = [element.autocomplete, element.name, element.id].map((hint) => String(hint || '').toLowerCase());
  const secret =
    kind === 'password' ||
    /one-time-code|current-password|new-password/.test(hints[0]) ||
    /passw|passcode|pwd|(^|[^a-z])otp([^a-z]|$)/.test(hints[1] + ' ' + hints[2]);
  if (['checkbox', 'radio', 'file', 'button', 'submit', 'reset', 'image', 'hidden'].includes(kind)) {
    return { mode: 'refused', secret };
  }
  if (element.tagName === 'SELECT') return { mode: 'refused', secret };
  const isText = kind === '' || ['text', 'password', 'search', 'email', 'url', 'tel', 'number'].includes(kind);
  if (!isText) {
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
    element.focus();
    set.call(element, text);
    if (element.value !== text && !(kind === 'color' && element.value === text.toLowerCase())) {
      return { mode: 'malformed', secret };
    }
    element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    element.dispatchEvent(new Event('change', { bubbles: true }));
    return { mode: 'set', secret };
  }
  element.focus();
  if ('value' in element && typeof element.select === 'function') {
    element.select();
    return { mode: 'keys', secret, empty: element.value === '' };
  }
  const selection = getSelection();
  const range = document.createRange();
  range.selectNodeContents(element);
  selection.removeAllRanges();
  selection.addRange(range);
  return { mode: 'keys', secret, empty: element.textContent === '' };
}
