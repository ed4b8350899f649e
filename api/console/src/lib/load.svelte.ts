// One answer that a screen waits for: loading, there, or refused. The last good answer stays while a newer one comes.
import { Problem } from "../api/problem";

export class Load<T> {
  data = $state.raw<T | null>(null);
  problem = $state.raw<Problem | null>(null);
  isLoading = $state(true);
  #turn = 0;

  constructor(private readonly ask: () => Promise<T>) {}

  /** Asks (again). An older answer that comes late is dropped. */
  async run(): Promise<void> {
    const turn = ++this.#turn;
    this.isLoading = true;
    try {
      const data = await this.ask();
      if (turn !== this.#turn) return;
      this.data = data;
      this.problem = null;
    } catch (thrown) {
      if (turn !== this.#turn) return;
      this.problem = Problem.from(thrown);
    } finally {
      if (turn === this.#turn) this.isLoading = false;
    }
  }
}

/** One change that a person asked for: under way, refused, or done. */
export class Act {
  isBusy = $state(false);
  problem = $state.raw<Problem | null>(null);

  /** True when it was done. A second call while one is under way does nothing. */
  async run(work: () => Promise<void>): Promise<boolean> {
    if (this.isBusy) return false;
    this.isBusy = true;
    this.problem = null;
    try {
      await work();
      return true;
    } catch (thrown) {
      this.problem = Problem.from(thrown);
      return false;
    } finally {
      this.isBusy = false;
    }
  }
}
