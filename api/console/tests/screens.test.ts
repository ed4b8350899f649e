// Every screen, with real content, in both themes and at both widths: pictures to look at, and what axe finds.
import axe from "axe-core";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { launch, Tab } from "./browser";
import { Pages } from "./pages";
import { Server } from "./server";

let server: Server;
let pages: Pages;
let browser: Browser;
let space = "";
let failed = "";

beforeAll(async () => {
  [server, pages, browser] = await Promise.all([Server.start(["--instances", "0"]), Pages.start(), launch()]);
  const chromium = await server.chromium(pages.url);
  space = await server.space(chromium);
  await server.task(space, "navigate", { url: `${pages.url}/shop` });
  await server.task(space, "screenshot", {});
  await server.task(space, "navigate", { url: `${pages.url}/cart` });
  await server.task(space, "screenshot", {});
  await server.task(space, "click", { ref: "e77" });
  await server.task(space, "navigate", { url: `${pages.url}/hostile` });
  await server.task(space, "snapshot", {});
  failed = await server.space(await server.scripted("A scripted one"), "agent-of-the-night-shift");
  await server.post("/workspaces/default/bindings", { browser_instance_id: chromium, owner_id: "agent-7", capabilities: ["navigate", "snapshot"] });
  await server.token("auditor", "auditor@example.org");
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await pages?.stop();
});

interface Screen {
  name: string;
  fragment: () => string;
  /** A text that is there once the screen has what it shows. */
  shows: () => string | RegExp;
}

const SCREENS: Screen[] = [
  { name: "spaces", fragment: () => "#/w/default/spaces", shows: () => "agent-of-the-night-shift" },
  { name: "create", fragment: () => "#/w/default/spaces/new", shows: () => "Granted capabilities" },
  { name: "space", fragment: () => `#/w/default/spaces/${space}`, shows: () => "22 events" },
  { name: "replay", fragment: () => `#/w/default/spaces/${space}/replay?at=12`, shows: () => "Screenshot of that moment" },
  { name: "log", fragment: () => "#/w/default/log?at=2", shows: () => "The full record" },
  { name: "instances", fragment: () => "#/w/default/instances", shows: () => "A scripted one" },
  { name: "bindings", fragment: () => "#/w/default/bindings", shows: () => "agent-7" },
  { name: "tokens", fragment: () => "#/w/default/tokens", shows: () => "auditor@example.org" },
];

async function seriousFindings(tab: Tab): Promise<string[]> {
  // Evaluated by the debugger, not as a script of the page: the page's own policy stays in force.
  const found = await tab.page.evaluate(`(() => { ${axe.source}; return window.axe.run(document, { resultTypes: ["violations"] }); })()`);
  const { violations } = found as { violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[] };
  return violations.filter((one) => one.impact === "serious" || one.impact === "critical").map((one) => `${one.id}: ${one.nodes.map((node) => `${node.html.slice(0, 160)} ${node.failureSummary}`).slice(0, 3).join(" | ")}`);
}

describe.each([
  { look: "wide-light", width: 1280, dark: false },
  { look: "wide-dark", width: 1280, dark: true },
  { look: "phone-light", width: 390, dark: false },
  { look: "phone-dark", width: 390, dark: true },
])("at $look", ({ look, width, dark }) => {
  let tab: Tab;
  beforeAll(async () => {
    tab = await Tab.open(browser, server, { width, dark });
  });
  afterAll(async () => {
    await tab?.close();
  });

  test("the sign-in has no serious finding and fits", async () => {
    await tab.page.goto(server.url);
    await tab.page.getByLabel("Token", { exact: true }).waitFor();
    await tab.picture(`sign-in-${look}`);
    expect(await seriousFindings(tab)).toEqual([]);
    await tab.signIn(server.operator);
  });

  test.each(SCREENS)("$name has no serious finding, fits, and breaks no policy", async ({ name, fragment, shows }) => {
    await tab.go(fragment());
    await tab.page.getByText(shows()).first().waitFor();
    if (name === "replay") await tab.page.locator(".picture img").waitFor();
    // The newest event is in sight, also of a timeline that is longer than its box.
    if (name === "space") await tab.page.locator(".event-number", { hasText: /^22$/ }).waitFor();
    await tab.picture(`${name}-${look}`);
    const sideways = await tab.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    expect(sideways).toBeLessThanOrEqual(0);
    expect(await seriousFindings(tab)).toEqual([]);
    tab.expectClean();
  });

  test("the question before a close has no serious finding", async () => {
    await tab.go(`#/w/default/spaces/${failed}`);
    await tab.page.getByRole("button", { name: "Close the Space" }).click();
    await tab.page.getByRole("dialog").waitFor();
    await tab.picture(`close-${look}`);
    expect(await seriousFindings(tab)).toEqual([]);
    await tab.page.keyboard.press("Escape");
    await tab.page.getByRole("dialog").waitFor({ state: "detached" });
    tab.expectClean();
  });
});
