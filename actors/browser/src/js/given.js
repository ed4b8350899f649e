function (step) {
  // Of a field for files: what it takes; then, from 'hear' to 'tell', the files that it had when the page heard of them.
  if (step === 'facts') return { several: this.multiple, disabled: this.matches(':disabled'), folder: this.webkitdirectory };
  const files = () => [...this.files].map((file) => ({ name: file.name, bytes: file.size }));
  if (step === 'hear') {
    const heard = { files: null };
    globalThis.heard = heard;
    // Pages like to empty the field at once, so it is looked at before they hear of it.
    const note = (event) => {
      if (event.composedPath()[0] === this && this.files.length) heard.files = files();
    };
    for (const type of ['input', 'change']) addEventListener(type, note, { capture: true, once: true });
    return [];
  }
  return (globalThis.heard && globalThis.heard.files) || files();
}
