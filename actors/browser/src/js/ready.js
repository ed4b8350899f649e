async function (checks) {
  // Which of the checks fails first: 'gone', 'visible', 'enabled', 'editable' or 'stable'; null if none.
  const failed = failedOf(this, checks);
  if (failed || !checks.includes('stable')) return failed;
  const frame = () =>
    new Promise((done) => {
      const late = setTimeout(done, 300);
      requestAnimationFrame(() => {
        clearTimeout(late);
        done();
      });
    });
  const element = elementOf(this);
  await frame();
  const first = placeOf(element);
  await frame();
  if (!this.isConnected) return 'gone';
  return placeOf(element) === first ? null : 'stable';
}
