function () {
  const entry = performance.getEntriesByType('navigation')[0];
  return (entry && entry.responseStatus) || null;
}
