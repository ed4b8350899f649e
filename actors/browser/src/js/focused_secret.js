function () {
  // The value of this frame's focused field if it hides what is typed; null if it does not.
  let element = document.activeElement;
  while (element && element.shadowRoot && element.shadowRoot.activeElement) element = element.shadowRoot.activeElement;
  if (!element) return null;
  const hints = [element.autocomplete, element.name, element.id].map((hint) => String(hint || '').toLowerCase());
  const hides =
    element.type === 'password' ||
    /one-time-code|current-password|new-password/.test(hints[0]) ||
    /passw|passcode|pwd|(^|[^a-z])otp([^a-z]|$)/.test(hints[1] + ' ' + hints[2]);
  return hides ? String(element.value || '') : null;
}
