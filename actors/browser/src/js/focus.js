function () {
  // Focuses this element, with the caret at the end of its text, and tells whether it hides what is typed.
  this.focus();
  try {
    if ('selectionStart' in this && this.value) this.setSelectionRange(this.value.length, this.value.length);
  } catch (error) {
    // Some kinds of input have no caret.
  }
  if (this.isContentEditable) {
    const selection = getSelection();
    selection.selectAllChildren(this);
    selection.collapseToEnd();
  }
  const hints = [this.autocomplete, this.name, this.id].map((hint) => String(hint || '').toLowerCase());
  return (
    this.type === 'password' ||
    /one-time-code|current-password|new-password/.test(hints[0]) ||
    /passw|passcode|pwd|(^|[^a-z])otp([^a-z]|$)/.test(hints[1] + ' ' + hints[2])
  );
}
