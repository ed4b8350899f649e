import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// Everything is a file of its own (no inline script, style or data: address), so that the server's policy can be strict.
export default defineConfig({
  plugins: [svelte()],
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
