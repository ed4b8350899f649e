import { readFileSync } from "node:fs";

import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

/** What runs in the page holds code of Svelte: its licence goes with it. */
const licences: Plugin = {
  name: "licences",
  generateBundle() {
    const source = readFileSync(new URL("node_modules/svelte/LICENSE.md", import.meta.url), "utf8");
    this.emitFile({ type: "asset", name: "licences.txt", source: `Svelte (https://svelte.dev)\n\n${source}` });
  },
};

// Everything is a file of its own (no inline script, style or data: address), so that the server's policy can be strict.
export default defineConfig({
  plugins: [svelte(), licences],
  build: {
    outDir: "dist/site",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
  server: {
    proxy: { "/api": process.env.BROWSERSPACE_URL ?? "http://127.0.0.1:7878" },
  },
});
