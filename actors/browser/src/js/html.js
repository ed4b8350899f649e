function (isOuter, chars) {
  // The markup of this element or document, without what runs, styles, hides or may be a secret; cut between elements.
  const top = this instanceof Element ? this : document.documentElement;
  const left = new Set(['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'LINK', 'META', 'BASE']);
  const empty = new Set(['AREA', 'BR', 'COL', 'EMBED', 'HR', 'IMG', 'INPUT', 'SOURCE', 'TRACK', 'WBR']);
  const text = (data) => data.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
  const quoted = (data) => data.replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;');
  const addresses = new Set(['href', 'src', 'action', 'formaction', 'srcset', 'poster', 'data', 'xlink:href', 'ping']);
  const secret = /token|secret|passw|passcode|pwd|csrf|xsrf|nonce|auth|session|api-?key|signature|credential/i;
  const attributes = (element) => {
    let written = '';
    for (const { name, value } of element.attributes) {
      const low = name.toLowerCase();
      if (low.startsWith('on') || ['value', 'srcdoc', 'nonce', 'integrity', 'style'].includes(low)) continue;
      if (low !== 'autocomplete' && low !== 'name' && low !== 'id' && low !== 'for' && secret.test(low)) continue;
      if (addresses.has(low) && /^\s*(javascript|data|blob):/i.test(value)) {
        written += ' ' + name + '="' + quoted(value.trim().split(':')[0]) + ':"';
        continue;
      }
      const short = value.length > 500 ? value.slice(0, 500) + '…' : value;
      written += ' ' + name + (short === '' ? '' : '="' + quoted(short) + '"');
    }
    return written;
  };
  const childrenOf = (node) => (node.shadowRoot ? [node.shadowRoot, ...node.childNodes] : [...node.childNodes]);
  // Without recursion: a page may nest thousands of elements.
  const parts = [];
  let size = 0;
  let omitted = 0;
  let isFull = false;
  const put = (part) => {
    parts.push(part);
    size += part.length;
  };
  const waiting = isOuter ? [top] : childrenOf(top).reverse();
  while (waiting.length) {
    const next = waiting.pop();
    if (typeof next === 'string') {
      put(next);
      continue;
    }
    if (next.nodeType === Node.TEXT_NODE) {
      if (isFull) continue;
      const isField = next.parentNode && next.parentNode.nodeName === 'TEXTAREA';
      const data = isField ? '' : text(next.data.replace(/\s+/g, ' '));
      if (size + data.length > chars) isFull = true;
      put(isFull ? data.slice(0, Math.max(0, chars - size)).replace(/&[a-z]*$|[\ud800-\udbff]$/, '') : data);
      continue;
    }
    if (next.nodeType === Node.DOCUMENT_FRAGMENT_NODE) {
      const open = '<template shadowrootmode="open">';
      if (isFull || size + open.length > chars) {
        isFull = true;
        omitted += next.querySelectorAll('*').length;
        continue;
      }
      put(open);
      waiting.push('</template>', ...childrenOf(next).reverse());
      continue;
    }
    if (next.nodeType !== Node.ELEMENT_NODE || left.has(next.nodeName.toUpperCase())) continue;
    const name = next.localName;
    const open = isFull ? '' : '<' + name + attributes(next) + '>';
    if (isFull || size + open.length > chars) {
      isFull = true;
      omitted += 1 + next.querySelectorAll('*').length;
      continue;
    }
    put(open);
    if (empty.has(next.nodeName)) continue;
    waiting.push('</' + name + '>');
    for (const child of childrenOf(next).reverse()) waiting.push(child);
  }
  return { html: parts.join(''), omitted };
}
