// Pages for the browsers of a test, on this machine only.
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";

/** Markup, a script, an escape of a terminal, an override of direction, and much of it. */
export const HOSTILE = `<img src=x onerror=alert(1)><script>alert(2)</script>\u001b[31mred\u202Etxt.exe "'><b>bold</b> `;
export const HUGE = `${HOSTILE}${"W".repeat(10_000)}`;

function escaped(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");
}

const PAGES: Record<string, string> = {
  "/shop": `<!doctype html><title>Tea shop</title><body style="font:20px sans-serif;background:#eef6ee"><h1>Tea shop</h1><p>Two kinds of tea.</p><a href="/cart">Cart</a> <button>Buy</button><input aria-label="How many"></body>`,
  "/cart": `<!doctype html><title>Cart</title><body style="font:20px sans-serif;background:#f6eeee"><h1>Your cart</h1><p>One tea.</p></body>`,
  "/hostile": `<!doctype html><title>${escaped(HOSTILE)}</title><h1>${escaped(HOSTILE)}</h1><p>${escaped(HUGE)}</p>`,
};

export class Pages {
  private constructor(readonly url: string, private readonly server: HttpServer) {}

  static async start(): Promise<Pages> {
    const server = createServer((request, response) => {
      const page = PAGES[request.url ?? ""];
      // A slow one, for tasks that run for a while.
      if (request.url === "/slow") return void setTimeout(() => response.end("late"), 20_000).unref();
      response.writeHead(page === undefined ? 404 : 200, { "Content-Type": "text/html; charset=utf-8" });
      response.end(page ?? "nothing here");
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    return new Pages(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, server);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise<void>((closed) => this.server.close(() => closed()));
  }
}
