import { defineConfig } from "vitest/config";

// Each file starts a server and a Chromium of its own; one after the other, for a test machine has two cores.
export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    environment: "node",
    fileParallelism: false,
    testTimeout: 90_000,
    hookTimeout: 90_000,
  },
});
