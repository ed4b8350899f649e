// Whether the window is as wide as a phone; the same bound stands in app.css.

class Narrow {
  is = $state(false);

  constructor() {
    const query = matchMedia("(max-width: 720px)");
    this.is = query.matches;
    query.addEventListener("change", () => {
      this.is = query.matches;
    });
  }
}

export const narrow = new Narrow();
