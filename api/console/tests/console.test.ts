// What an operator, an auditor and an agent do in the console, on the real server with real Spaces.
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { launch, Tab } from "./browser";
import { HOSTILE, HUGE, Pages } from "./pages";
import { Server } from "./server";

let server: Server;
let pages: Pages;
let browser: Browser;
let chromium = "";
let tab: Tab;

beforeAll(async () => {
  [server, pages, browser] = await Promise.all([Server.start(["--instances", "0"]), Pages.start(), launch()]);
  chromium = await server.chromium(pages.url);
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
  await pages?.stop();
});

beforeEach(async () => {
  tab = await Tab.open(browser, server);
});

afterEach(async () => {
  tab.expectClean();
  await tab.close();
  // Each test finds every browser free.
  const spaces = await server.get<{ space_id: string; status: string }[]>("/workspaces/default/browser-spaces?limit=100");
  await Promise.all(spaces.filter((one) => one.status !== "closed").map((one) => server.post(`/workspaces/default/browser-spaces/${one.space_id}/close`)));
});

async function closed(space: string): Promise<boolean> {
  return (await server.get<{ status: string }>(`/workspaces/default/browser-spaces/${space}`)).status === "closed";
}

function spaceOfAddress(): string {
  return /spaces\/(spc_[0-9a-z]+)/.exec(tab.page.url())?.[1] ?? "";
}

test("a wrong token is refused with its code, and stands in no address or storage", async () => {
  await tab.page.goto(server.url);
  await tab.page.getByRole("button", { name: "Sign in" }).click();
  await tab.page.getByText("Enter a token.").waitFor();
  await tab.page.getByLabel("Token", { exact: true }).fill("bst_wrong");
  await tab.page.getByRole("button", { name: "Sign in" }).click();
  await tab.page.getByText("unauthenticated").waitFor();
  expect(tab.page.url()).not.toContain("bst_");
  expect(await tab.page.evaluate(() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }]))).not.toContain("bst_");
});

test("a token is kept for the tab only where one says so, and never in an address or in local storage", async () => {
  await tab.signIn(server.operator);
  await tab.page.reload();
  await tab.page.locator("nav").waitFor();
  expect(await tab.page.evaluate(() => JSON.stringify({ ...localStorage }))).not.toContain("bst_");
  await tab.page.getByText("Settings").click();
  await tab.page.getByRole("button", { name: "Sign out" }).click();
  await tab.page.getByLabel("Token", { exact: true }).fill(server.operator);
  await tab.page.getByLabel("Keep it until this tab is closed").uncheck();
  await tab.page.getByRole("button", { name: "Sign in" }).click();
  await tab.page.locator("nav").waitFor();
  expect(await tab.page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain("bst_");
  await tab.page.reload();
  await tab.page.getByLabel("Token", { exact: true }).waitFor();
  expect(tab.page.url()).not.toContain("bst_");
});

test("the page's policy lets nothing inline or foreign run", async () => {
  const answer = await fetch(server.url);
  const policy = answer.headers.get("content-security-policy") ?? "";
  expect(policy).toMatch(/^default-src 'none'/);
  expect(policy).not.toMatch(/unsafe|\*|https?:|data:/);
  await tab.page.goto(server.url);
  const ran = await tab.page.evaluate(() => {
    const script = document.createElement("script");
    try {
      script.textContent = "window.ranInline = true";
      document.body.append(script);
    } catch {
      return false;
    }
    return "ranInline" in window;
  });
  expect(ran).toBe(false);
  // What was provoked here is no fault of the page.
  expect(tab.bad.length).toBeGreaterThan(0);
  tab.bad.length = 0;
});

test("an operator opens a Space, runs a task, sees it live with its picture, and closes it", async () => {
  await tab.signIn(server.operator, `#/w/default/spaces/new?instance=${chromium}`);
  await tab.page.getByRole("textbox", { name: "Owner" }).fill("operator");
  await tab.page.getByRole("button", { name: "Open the Space" }).click();
  await tab.page.getByRole("heading", { name: "Run a task" }).waitFor();
  const space = spaceOfAddress();

  await tab.page.getByRole("button", { name: "Submit" }).click();
  await tab.page.getByText("This is required.").waitFor();
  await tab.page.getByLabel("url required").fill(`${pages.url}/shop`);
  await tab.page.getByRole("button", { name: "Submit" }).click();
  await tab.page.getByText("Accepted:").waitFor();
  await tab.page.locator(".event-kind", { hasText: "completed" }).waitFor();
  await tab.page.locator(".event-summary", { hasText: "Tea shop" }).waitFor();
  // Args do not stay on the screen.
  expect(await tab.page.getByLabel("url required").inputValue()).toBe("");

  await tab.page.getByLabel("Capability").selectOption("screenshot");
  await tab.page.getByRole("button", { name: "Submit" }).click();
  const picture = tab.page.locator(".picture img").first();
  await picture.waitFor();
  expect(await picture.getAttribute("src")).toMatch(/^blob:/);
  expect(await picture.evaluate((image: HTMLImageElement) => image.complete && image.naturalWidth > 100)).toBe(true);

  await tab.page.getByRole("button", { name: "Close the Space" }).click();
  await tab.page.getByRole("dialog").getByRole("button", { name: "Leave it as it is" }).click();
  expect(await closed(space)).toBe(false);
  await tab.page.getByRole("button", { name: "Close the Space" }).click();
  await tab.page.getByRole("dialog").getByRole("button", { name: "Close the Space" }).click();
  await tab.page.getByText("This Space is closed (requested).").waitFor();
  await tab.page.getByText("Complete: nothing follows").waitFor();
  expect(await closed(space)).toBe(true);
  expect(await tab.page.getByRole("button", { name: "Submit" }).count()).toBe(0);
});

test("a running task shows its deadline, blocks the next, and ends by a cancel that was confirmed", async () => {
  const space = await server.space(chromium);
  await tab.signIn(server.operator, `#/w/default/spaces/${space}`);
  await server.task(space, "navigate", { url: `${pages.url}/slow` }, 0);
  await tab.page.getByText(/\d+ s left/).waitFor();
  await tab.page.getByText("A task is queued or running; the next one").waitFor();
  expect(await tab.page.getByRole("button", { name: "Submit" }).isDisabled()).toBe(true);
  await tab.page.getByRole("button", { name: "Cancel the task" }).click();
  await tab.page.getByRole("dialog").getByRole("button", { name: "Cancel the task" }).click();
  await tab.page.locator(".event-kind", { hasText: /^cancelled$/ }).waitFor();
  await tab.page.getByText("No task is queued or running.").waitFor();
});

test("a browser in use is refused by its code, with no offer of a shared one", async () => {
  await server.space(chromium);
  await tab.signIn(server.operator, `#/w/default/spaces/new?instance=${chromium}`);
  await tab.page.getByRole("textbox", { name: "Owner" }).fill("operator");
  await tab.page.getByRole("button", { name: "Open the Space" }).click();
  const alert = tab.page.getByRole("alert");
  await alert.getByText("browser_instance_in_use").waitFor();
  await alert.getByText("A browser is never shared").waitFor();
  await alert.getByText("The same request may succeed later.").waitFor();
  expect((await alert.innerText()).toLowerCase()).not.toMatch(/share (a|the|this)|join|tab/);
});

test("a submit that the server refuses while a task runs shows space_task_in_progress", async () => {
  const space = await server.space(chromium);
  await tab.signIn(server.operator, `#/w/default/spaces/${space}`);
  await tab.page.getByLabel("url required").fill(`${pages.url}/shop`);
  // The page sends while nothing runs; another client's task comes first.
  let release: () => void = () => {};
  const held = new Promise<void>((go) => (release = go));
  await tab.page.route("**/tasks", async (route) => {
    await held;
    await route.continue();
  });
  await tab.page.getByRole("button", { name: "Submit" }).click();
  await server.task(space, "navigate", { url: `${pages.url}/slow` }, 0);
  release();
  await tab.page.getByRole("alert").getByText("space_task_in_progress").waitFor();
});

test("a submit without an answer is sent again with the same id, and runs once", async () => {
  const space = await server.space(chromium);
  await tab.signIn(server.operator, `#/w/default/spaces/${space}`);
  await tab.page.getByLabel("url required").fill(`${pages.url}/shop`);
  let lost = 0;
  await tab.page.route("**/tasks", async (route) => {
    if (lost++ > 0) return route.continue();
    // The server takes it; its answer gets lost.
    await route.fetch();
    await route.abort();
  });
  await tab.page.getByRole("button", { name: "Submit" }).click();
  await tab.page.getByText("no_answer").waitFor();
  await tab.page.getByRole("button", { name: "Send again with the same id" }).click();
  await tab.page.getByText("Accepted:").waitFor();
  await tab.page.locator(".event-kind", { hasText: "completed" }).waitFor();
  expect((await server.get<unknown[]>(`/workspaces/default/browser-spaces/${space}/tasks`)).length).toBe(1);
});

test("replay scrubs by keyboard, jumps to a failure, and its link leads back to the sequence", async () => {
  const space = await server.space(chromium);
  await server.task(space, "navigate", { url: `${pages.url}/shop` });
  await server.task(space, "screenshot", {});
  await server.task(space, "click", { ref: "e77" });
  await tab.signIn(server.operator, `#/w/default/spaces/${space}/replay?at=3`);
  const count = tab.page.locator("output.count");
  await count.getByText("3 of 10").waitFor();
  await tab.page.getByText("No screenshot was taken up to here.").waitFor();
  await tab.page.keyboard.press("ArrowRight");
  await count.getByText("4 of 10").waitFor();
  await tab.page.getByRole("button", { name: "Next failure" }).click();
  await count.getByText("10 of 10").waitFor();
  await tab.page.locator(".picture img").waitFor();
  await tab.page.getByText("element_not_found").first().waitFor();
  await tab.page.getByRole("button", { name: "Copy a link to this sequence" }).click();
  await tab.page.getByText("Copied").waitFor();
  const link = await tab.page.evaluate(() => navigator.clipboard.readText());
  expect(link).toBe(`${server.url}/#/w/default/spaces/${space}/replay?at=10`);
  await tab.page.keyboard.press("Home");
  await count.getByText("1 of 10").waitFor();
  await tab.page.goto(link);
  await count.getByText("10 of 10").waitFor();
});

test("hostile text is inert and breaks no layout, on every screen that shows it (C12)", async () => {
  const name = HOSTILE.replace(/[\u0000-\u001f]/g, "").slice(0, 100);
  const instance = await server.scripted(name);
  const space = await server.space(chromium, `<b/onclick=alert(3)>${"long".repeat(25)}`);
  await server.task(space, "navigate", { url: `${pages.url}/hostile` });
  await server.task(space, "snapshot", {});
  expect(HUGE.length).toBeGreaterThan(10_000);
  const img = "<img src=x onerror=alert(4)>";
  // Each with a text that is there only once its hostile text is.
  const screens: [string, string | RegExp][] = [
    ["#/w/default/spaces", /longlong/], [`#/w/default/spaces/${space}`, "7 events"], [`#/w/default/spaces/${space}/replay?at=4`, "⟨202E⟩"],
    ["#/w/default/log", "⟨202E⟩"], ["#/w/default/instances", /<script>alert\(2\)/], ["#/w/default/spaces/new", /<script>alert\(2\)/],
    [`#/w/${encodeURIComponent(img)}/spaces`, "The server refused"], ["#/w/default/spaces/<script>alert(5)<%2Fscript>", "The server refused"],
  ];
  await tab.signIn(server.operator);
  for (const width of [1280, 390]) {
    await tab.page.setViewportSize({ width, height: 844 });
    for (const [fragment, shown] of screens) {
      await tab.go(fragment);
      await tab.page.getByText(shown).first().waitFor();
      const found = await tab.page.evaluate(() => ({
        sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        made: document.querySelectorAll("#app script, #app img[src='x'], #app b, #app [onclick], #app [onerror]").length,
        overrides: /[\u202a-\u202e\u2066-\u2069\u001b]/.test(document.body.innerText),
      }));
      expect(found, fragment).toEqual({ sideways: 0, made: 0, overrides: false });
    }
  }
  await tab.go(`#/w/default/spaces/${space}`);
  await tab.page.getByText("⟨202E⟩").first().waitFor();
  await tab.picture("hostile-phone");
  await server.post(`/browser-instances/${instance}/retire`);
});

test("the log is followed, filtered, and shows an event's full record", async () => {
  await tab.signIn(server.operator, "#/w/default/log");
  await tab.page.getByText("Live", { exact: true }).waitFor();
  const space = await server.space(chromium);
  await tab.page.getByRole("searchbox").fill(space);
  const opened = tab.page.locator(".event-row", { hasText: "opened" });
  await opened.click();
  await tab.page.getByText(`space/${space}`).waitFor();
  expect(await tab.page.locator(".facts", { hasText: "Trace id" }).innerText()).toMatch(/[0-9a-f]{32}/);
  await tab.page.getByLabel("Failures only").check();
  await tab.page.getByText("Nothing fits these filters yet.").waitFor();
});

test("an instance is registered and retired, a binding granted and revoked", async () => {
  await tab.signIn(server.operator, "#/w/default/instances");
  await tab.page.getByRole("button", { name: "Register an instance" }).click();
  const form = tab.page.getByRole("form", { name: "Register an instance" });
  await form.getByLabel("Kind").selectOption("scripted");
  await form.getByLabel("Name").fill("Made in the console");
  await form.getByRole("button", { name: "Register" }).click();
  const card = tab.page.locator("li.card", { hasText: "Made in the console" });
  await card.getByRole("button", { name: "Retire" }).click();
  await tab.page.getByRole("dialog").getByRole("button", { name: "Retire the instance" }).click();
  await card.getByText("retired").waitFor();

  await tab.go("#/w/default/bindings");
  await tab.page.getByRole("button", { name: "Grant a binding" }).click();
  await tab.page.getByLabel("Instance", { exact: true }).fill("ins_00000000000000000000000000");
  await tab.page.getByRole("button", { name: "Grant", exact: true }).click();
  await tab.page.getByRole("alert").getByText(/instance_not_found|invalid_request/).waitFor();
  await tab.page.getByLabel("Instance", { exact: true }).fill(chromium);
  await tab.page.getByLabel("Only this owner").fill("agent-9");
  await tab.page.getByRole("button", { name: "Grant", exact: true }).click();
  const binding = tab.page.locator("li.card", { hasText: "agent-9" });
  await binding.getByRole("button", { name: "Revoke" }).click();
  await tab.page.getByRole("dialog").getByRole("button", { name: "Revoke the binding" }).click();
  await binding.getByText("revoked").waitFor();
});

test("a token is shown once, and a revoked one is signed out", async () => {
  await tab.signIn(server.operator, "#/w/default/tokens");
  await tab.page.getByRole("button", { name: "Issue a token" }).click();
  await tab.page.getByRole("radio", { name: /^Operator/ }).check();
  await tab.page.getByLabel("Owner", { exact: true }).fill("second");
  await tab.page.getByRole("button", { name: "Issue", exact: true }).click();
  const token = await tab.page.locator(".secret").innerText();
  expect(token).toMatch(/^bst_/);
  await tab.page.getByRole("button", { name: "I have it" }).click();
  expect(await tab.page.content()).not.toContain(token);

  const second = await Tab.open(browser, server);
  await second.signIn(token, "#/w/default/log");
  await second.page.getByText("Live", { exact: true }).waitFor();
  const card = tab.page.locator("li.card", { hasText: "second" });
  await card.getByRole("button", { name: "Revoke" }).click();
  await tab.page.getByRole("dialog").getByRole("button", { name: "Revoke the token" }).click();
  await second.page.getByText("You were signed out").waitFor();
  second.expectClean();
  await second.close();
});

test("an agent sees its own Spaces and no log; what belongs to others does not exist", async () => {
  const agent = await server.token("runtime_agent", "agent-1");
  const foreign = await server.space(chromium);
  await tab.signIn(agent);
  await tab.page.getByText("No Space yet.").waitFor();
  await tab.page.getByText("Asked every 3 seconds").waitFor();
  expect(await tab.page.locator("nav a").allInnerTexts()).toEqual(["Spaces", "Instances", "Bindings"]);
  await tab.go("#/w/default/log");
  await tab.page.getByRole("alert").getByText("forbidden").waitFor();
  await tab.go(`#/w/default/spaces/${foreign}`);
  await tab.page.getByRole("alert").getByText(/forbidden|space_not_found/).waitFor();
});

test("an auditor reads everything, and is offered nothing that would be refused", async () => {
  const auditor = await server.token("auditor", "auditor-1");
  const space = await server.space(chromium);
  await tab.signIn(auditor, `#/w/default/spaces/${space}`);
  await tab.page.getByText("No task is queued or running.").waitFor();
  const offered = async (): Promise<string[]> => tab.page.locator("main button, main a.button").allInnerTexts();
  const changes = /close|cancel|submit|open|register|retire|grant|revoke|issue/i;
  expect((await offered()).filter((text) => changes.test(text))).toEqual([]);
  await tab.page.getByRole("link", { name: "Replay" }).waitFor();
  for (const [screen, shows] of [["spaces", "agent"], ["instances", "Health"], ["bindings", "Bindings"], ["tokens", "auditor-1"]] as const) {
    await tab.go(`#/w/default/${screen}`);
    await tab.page.locator("main").getByText(shows).first().waitFor();
    expect((await offered()).filter((text) => changes.test(text)), screen).toEqual([]);
  }
  await tab.go("#/w/default/spaces/new");
  await tab.page.getByText("There is no such screen.").waitFor();
  expect(await closed(space)).toBe(false);
});

test("the main path needs no mouse", async () => {
  const space = await server.space(chromium);
  await tab.signIn(server.operator);
  await tab.page.getByRole("link", { name: /idle/ }).first().focus();
  await tab.page.keyboard.press("Enter");
  await tab.page.getByLabel("url required").focus();
  await tab.page.keyboard.type(`${pages.url}/shop`);
  await tab.page.keyboard.press("Enter");
  await tab.page.locator(".event-summary", { hasText: "Tea shop" }).waitFor();
  await tab.page.getByRole("button", { name: "Close the Space" }).focus();
  await tab.page.keyboard.press("Enter");
  // The safe answer has the focus: a second Enter closes nothing.
  await tab.page.getByRole("dialog").waitFor();
  await tab.page.keyboard.press("Enter");
  await tab.page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await closed(space)).toBe(false);
});

test("the console speaks Chinese, and keeps the choice", async () => {
  await tab.signIn(server.operator);
  await tab.page.getByText("Settings").click();
  await tab.page.getByLabel("Language").selectOption("zh");
  await tab.page.getByRole("heading", { name: "空间" }).waitFor();
  await tab.page.reload();
  await tab.page.getByRole("heading", { name: "空间" }).waitFor();
  expect(await tab.page.evaluate(() => document.documentElement.lang)).toBe("zh-Hans");
});

test("what a Space's browser shows is watched live, as asked for and no longer than that", async () => {
  const space = await server.space(chromium);
  await server.task(space, "navigate", { url: `${pages.url}/shop` });
  await tab.signIn(server.operator, `#/w/default/spaces/${space}`);
  const asked: string[] = [];
  tab.page.on("request", (request) => asked.push(request.url()));
  await tab.page.getByText("clicks and keys do not reach the page").waitFor();
  expect(asked.filter((url) => url.endsWith("/view"))).toEqual([]);
  await tab.page.getByRole("button", { name: "Watch", exact: true }).click();
  const picture = tab.page.getByAltText("What the browser shows now");
  await picture.waitFor();
  const first = await picture.getAttribute("src");
  await tab.picture("live-view");
  await server.task(space, "navigate", { url: `${pages.url}/cart` });
  await expect.poll(() => picture.getAttribute("src"), { timeout: 20_000 }).not.toBe(first);
  await tab.page.getByRole("button", { name: "Stop watching" }).click();
  await picture.waitFor({ state: "detached" });
  expect(asked.filter((url) => url.endsWith("/view"))).toHaveLength(1);
});
