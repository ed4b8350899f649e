function () {
  // Answers once the page has had its turn: its tasks and the timers of no length that were set before.
  return new Promise((done) => setTimeout(() => setTimeout(done, 0), 0));
}
