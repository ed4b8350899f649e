// A Chromium for a test, and pages that notice every violation of the policy and every error of a script.
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";

import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";
import { expect } from "vitest";

import type { Server } from "./server";

const CHROMIUMS = [process.env.BROWSERSPACE_CHROMIUM, "/usr/bin/chromium", "/usr/lib/chromium/chromium", "/usr/bin/google-chrome"];
const ARTIFACTS = resolve(import.meta.dirname, "../artifacts");

export async function launch(): Promise<Browser> {
  const executablePath = CHROMIUMS.find((path) => path !== undefined && existsSync(path));
  if (executablePath === undefined) throw new Error("no Chromium found: cargo xtask setup, or name it in BROWSERSPACE_CHROMIUM");
  // Root may not use the sandbox; these browsers open nothing but our own page.
  return chromium.launch({ executablePath, chromiumSandbox: process.getuid?.() !== 0 });
}

export interface Look {
  width?: number;
  dark?: boolean;
  locale?: string;
}

export class Tab {
  readonly bad: string[] = [];

  private constructor(readonly context: BrowserContext, readonly page: Page, readonly server: Server) {}

  static async open(browser: Browser, server: Server, look: Look = {}): Promise<Tab> {
    const width = look.width ?? 1280;
    const context = await browser.newContext({ viewport: { width, height: width < 600 ? 844 : 860 }, colorScheme: look.dark ? "dark" : "light", locale: look.locale ?? "en-GB", timezoneId: "UTC" });
    await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: server.url });
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    const tab = new Tab(context, page, server);
    page.on("pageerror", (error) => tab.bad.push(`error: ${error.message}`));
    page.on("console", (message) => {
      // A refused call is written there by Chromium itself, and is no fault of the page.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) tab.bad.push(`console: ${message.text()}`);
    });
    page.on("dialog", (dialog) => {
      tab.bad.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    await page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
    });
    return tab;
  }

  /** Opens the console at a fragment, signed in. */
  async signIn(token: string, fragment = ""): Promise<void> {
    await this.page.goto(`${this.server.url}/${fragment}`);
    await this.page.getByLabel("Token", { exact: true }).fill(token);
    await this.page.getByRole("button", { name: "Sign in" }).click();
    await this.page.locator("nav").waitFor();
  }

  async go(fragment: string): Promise<void> {
    await this.page.evaluate((to) => {
      location.hash = to;
    }, fragment);
  }

  /** Keeps a picture as an artifact of the run. */
  async picture(name: string): Promise<void> {
    await mkdir(ARTIFACTS, { recursive: true });
    await this.page.screenshot({ path: join(ARTIFACTS, `${name}.png`), fullPage: true });
  }

  /** Nothing was refused by the policy, no script failed, no dialog came up. */
  expectClean(): void {
    expect(this.bad).toEqual([]);
  }

  async close(): Promise<void> {
    await this.context.close();
  }
}
