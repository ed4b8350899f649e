function () {
  // What a captured page does not tell of the nodes of this document or shadow root, and of the open ones in it.
  const roots = [this];
  const modal = [];
  const invalid = [];
  const mixed = [];
  const files = [];
  const tables = [];
  let focused = null;
  const isInvalid = (field) => {
    // What is only missing is not wrong yet.
    const state = field.willValidate && field.validity;
    return Boolean(state) && !state.valid && !state.valueMissing;
  };
  const shows = (length) => parseFloat(length) > 0;
  // Whether a table that nothing else tells about is one of data, by the looks of its cells: Chromium's own rule.
  const looksLikeData = (table) => {
    const spaced = getComputedStyle(table).borderSpacing.split(' ').every(shows);
    const ground = getComputedStyle(table).backgroundColor;
    const rows = [];
    const sides = { Top: 0, Right: 0, Bottom: 0, Left: 0 };
    let [valid, bordered, coloured] = [0, 0, 0];
    for (const [number, row] of [...table.rows].entries()) {
      for (const cell of row.cells) {
        if (cell.headers || cell.abbr || cell.axis || cell.scope) return true;
        const style = getComputedStyle(cell);
        if (style.display !== 'table-cell' || cell.offsetWidth < 1 || cell.offsetHeight < 1) continue;
        valid += 1;
        if (style.emptyCells === 'hide' && !cell.firstChild) continue;
        const has = {};
        for (const side in sides) {
          has[side] = shows(style['border' + side + 'Width']);
          if (has[side]) sides[side] += 1;
        }
        if ((has.Top && has.Bottom) || (has.Left && has.Right)) bordered += 1;
        const isClear = /^(transparent|rgba\(.*, 0\))$/.test(style.backgroundColor);
        if (spaced && !isClear && style.backgroundColor !== ground) coloured += 1;
        if (bordered >= 10 || coloured >= 10) return true;
        if (number < 5 && number === rows.length) rows.push(getComputedStyle(row).backgroundColor);
      }
    }
    if (valid <= 1) return false;
    const half = Math.floor(valid / 2);
    if (Math.max(bordered, coloured, ...Object.values(sides)) >= half) return true;
    return rows.length > 2 && rows.every((colour, index) => (colour === rows[0]) === (index % 2 === 0));
  };
  const isOpen = (table) =>
    table.rows.length > 0 &&
    table.rows.length < 20 &&
    (table.rows.length > 1 || table.rows[0].cells.length > 1) &&
    !table.querySelector('th');
  while (roots.length) {
    const root = roots.pop();
    if (root.activeElement && root.activeElement !== document.body) focused = root.activeElement;
    for (const element of root.querySelectorAll('*')) {
      if (element.shadowRoot) roots.push(element.shadowRoot);
      switch (element.localName) {
        case 'input':
          if (element.indeterminate) mixed.push(element);
          if (element.type === 'file' && element.files.length) files.push([element, element.files.length, element.files[0].name]);
          if (isInvalid(element)) invalid.push(element);
          break;
        case 'select':
        case 'textarea':
        case 'button':
          if (isInvalid(element)) invalid.push(element);
          break;
        case 'dialog':
          if (element.matches(':modal')) modal.push(element);
          break;
        case 'table':
          if (isOpen(element) && looksLikeData(element)) tables.push(element);
          break;
      }
    }
  }
  return [[focused], modal, invalid, mixed, tables, files];
}
