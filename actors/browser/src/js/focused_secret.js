function () {
  // Whether the focused field of this frame hides what is typed.
  let element = document.activeElement;
  while (element && element.shadowRoot && element.shadowRoot.activeElement) element = element.shadowRoot.activeElement;
  if (!element) return false;
  const hints = [element.autocomplete, element.name, element.id].map((hint) => String(hint || '').toLowerCase());
  return (
    element.type === 'password' ||
    /one-time-code|current-password|new-password/.test(hints[0]) ||
    /passw|passcode|pwd|(^|[^a-z])otp([^a-z]|$)/.test(hints[1] + ' ' + hints[2])
  );
}
