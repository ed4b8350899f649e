function () {
  // Answers with the title once the page has had its turn: its tasks and the timers of no length that were set before.
  const title = (done) => () => done(document.title);
  return new Promise((done) => setTimeout(() => setTimeout(title(done), 0), 0));
}
