// The present, for ages and deadlines: one timer for the whole console.

class Now {
  ms = $state(Date.now());

  constructor() {
    setInterval(() => {
      if (!document.hidden) this.ms = Date.now();
    }, 1000);
  }
}

export const now = new Now();
