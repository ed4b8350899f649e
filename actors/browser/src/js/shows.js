function (text) {
  // Whether the text is shown in this frame, shadow roots that are open included.
  const plain = (value) => value.replace(/\s+/g, ' ');
  const wanted = plain(text);
  if (document.body && plain(document.body.innerText).includes(wanted)) return true;
  const roots = [document];
  while (roots.length) {
    for (const element of roots.pop().querySelectorAll('*')) {
      if (!element.shadowRoot) continue;
      for (const child of element.shadowRoot.children) {
        if (child.innerText && plain(child.innerText).includes(wanted)) return true;
      }
      roots.push(element.shadowRoot);
    }
  }
  return false;
}
