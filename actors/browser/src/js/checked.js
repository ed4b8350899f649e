function () {
  // What this can be checked as, and whether it is; null if it can not be checked.
  const element = (this.tagName === 'LABEL' && this.control) || this;
  if (element.tagName === 'INPUT' && ['checkbox', 'radio'].includes(element.type)) {
    return { radio: element.type === 'radio', checked: element.checked && !element.indeterminate, mixed: element.indeterminate };
  }
  const role = (element.getAttribute('role') || '').trim().split(/\s+/)[0];
  const isKnown = ['checkbox', 'radio', 'switch', 'menuitemcheckbox', 'menuitemradio', 'option', 'treeitem'].includes(role);
  if (!isKnown || (['option', 'treeitem'].includes(role) && !element.hasAttribute('aria-checked'))) return null;
  const state = element.getAttribute('aria-checked');
  return { radio: role.endsWith('radio'), checked: state === 'true', mixed: state === 'mixed' };
}
