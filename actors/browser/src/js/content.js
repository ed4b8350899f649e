function (format) {
  // The visible text of this element or document, plain or as Markdown. Values of fields are never part of it.
  // Nothing of the text is escaped: a secret with a backslash in it would no longer be known for one.
  const top = this instanceof Element ? this : document.body;
  if (!top) return '';
  if (format === 'text') {
    const texts = [top.innerText || ''];
    const roots = [top];
    while (roots.length) {
      for (const element of roots.pop().querySelectorAll('*')) {
        if (!element.shadowRoot) continue;
        for (const child of element.shadowRoot.children) if (child.innerText) texts.push(child.innerText);
        roots.push(element.shadowRoot);
      }
    }
    return texts.join('\n');
  }
  const skipped = new Set(['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'INPUT', 'TEXTAREA', 'SELECT', 'IFRAME', 'SVG']);
  const squeeze = (text) => text.replace(/\s+/g, ' ');
  const link = (element) => {
    const text = inline(element).trim();
    const target = /^https?:/.test(element.href) ? element.href.slice(0, 500) : '';
    return target && text ? '[' + text + '](' + target.replace(/[()\s]/g, encodeURIComponent) + ')' : text;
  };
  const inline = (node) => [...nodes(node)].map((child) => piece(child)).join('');
  const nodes = (node) => {
    if (node.shadowRoot) return node.shadowRoot.childNodes;
    if (node.tagName === 'SLOT' && node.assignedNodes().length) return node.assignedNodes();
    return node.childNodes;
  };
  const wrapped = (mark, text) => (text.trim() ? mark + text.trim() + mark : text);
  const piece = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return squeeze(node.data);
    if (node.nodeType !== Node.ELEMENT_NODE || skipped.has(node.tagName)) return '';
    if (!node.checkVisibility() && getComputedStyle(node).display !== 'contents') return '';
    switch (node.tagName) {
      case 'BR': return '\n';
      case 'A': return link(node);
      case 'B': case 'STRONG': return wrapped('**', inline(node));
      case 'I': case 'EM': return wrapped('_', inline(node));
      case 'CODE': return '`' + squeeze(node.textContent) + '`';
      case 'IMG': return node.alt ? '![' + squeeze(node.alt) + ']' : '';
      case 'PRE': return '\n\n```\n' + node.textContent.replace(/```/g, "'''").replace(/\n$/, '') + '\n```\n\n';
      case 'HR': return '\n\n---\n\n';
      case 'H1': case 'H2': case 'H3': case 'H4': case 'H5': case 'H6':
        return '\n\n' + '#'.repeat(Number(node.tagName[1])) + ' ' + inline(node).trim() + '\n\n';
      case 'LI': {
        const parent = node.parentElement;
        const number = parent && parent.tagName === 'OL' ? [...parent.children].indexOf(node) + (parent.start || 1) + '. ' : '- ';
        return '\n' + number + inline(node).trim().replace(/\n+/g, '\n  ');
      }
      case 'TR': {
        const cells = [...node.cells].map((cell) => inline(cell).trim().replace(/\n+/g, ' '));
        const isHead = node.rowIndex === 0;
        return '\n| ' + cells.join(' | ') + ' |' + (isHead ? '\n|' + ' --- |'.repeat(cells.length) : '');
      }
      case 'BLOCKQUOTE': return '\n\n> ' + inline(node).trim().replace(/\n/g, '\n> ') + '\n\n';
    }
    const display = getComputedStyle(node).display;
    const isBlock = !display.startsWith('inline') && display !== 'contents';
    return isBlock ? '\n\n' + inline(node).trim() + '\n\n' : inline(node);
  };
  return piece(top).replace(/[ \t]+\n/g, '\n').replace(/\n{3,}/g, '\n\n').trim();
}
