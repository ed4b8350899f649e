// The server goes and comes back under an open console: nothing is missed, nothing is shown twice.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { launch, Tab } from "./browser";
import { Server } from "./server";

let server: Server;
let browser: Browser;

beforeAll(async () => {
  [server, browser] = await Promise.all([Server.start(["--instances", "0"]), launch()]);
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

test("after a restart of the server the timeline goes on, without a gap or a repeat", async () => {
  const space = await server.space(await server.scripted());
  const tab = await Tab.open(browser, server);
  await tab.signIn(server.operator, `#/w/default/spaces/${space}`);
  await tab.page.getByText("Live", { exact: true }).waitFor();
  await server.task(space, "get_title", {});
  await tab.page.getByText("4 events").waitFor();
  expect(await tab.page.locator(".event-number").last().isVisible()).toBe(true);

  const listen = server.url.replace("http://", "");
  await server.kill();
  await tab.page.getByText("Disconnected. Trying again…").waitFor();
  await server.run(listen);
  await tab.page.getByText("Live", { exact: true }).waitFor();
  await server.post(`/workspaces/default/browser-spaces/${space}/close`);
  await tab.page.getByText("Complete: nothing follows").waitFor();

  const events = await server.get<{ sequence: number }[]>(`/workspaces/default/browser-spaces/${space}/events`);
  const shown = (await tab.page.locator(".event-number").allInnerTexts()).map(Number);
  expect(shown).toEqual(events.map((event) => event.sequence));
  tab.expectClean();
  await tab.close();
});

test("a list of 2 000 Spaces draws what is seen, and takes in what is new", async () => {
  const made = 2_000;
  const tab = await Tab.open(browser, server);
  // The server's own rows, many times: a list of so many real ones would take minutes to make.
  const space = await server.space(await server.scripted());
  const one = await server.get<Record<string, unknown>>(`/workspaces/default/browser-spaces/${space}`);
  const all = Array.from({ length: made }, (_, index) => ({ ...one, space_id: `spc_${String(index).padStart(26, "0")}`, owner_id: `owner-${index}`, created_at: new Date(1_700_000_000_000 - index * 1000).toISOString() }));
  await tab.page.route("**/browser-spaces?*", async (route) => {
    const from = Number(new URL(route.request().url()).searchParams.get("cursor") ?? 0);
    const data = all.slice(from, from + 100);
    const headers = (await route.fetch()).headers();
    await route.fulfill({ headers: { "x-log-position": headers["x-log-position"] ?? "0" }, json: { data, next: from + 100 < made ? String(from + 100) : null } });
  });
  await tab.signIn(server.operator);
  await tab.page.getByText("owner-0", { exact: true }).waitFor();
  const list = tab.page.locator(".virtual");
  await expect.poll(async () => {
    await list.evaluate((box) => box.scrollTo({ top: box.scrollHeight }));
    return tab.page.getByText("owner-1999", { exact: true }).count();
  }, { timeout: 60_000 }).toBe(1);
  expect(await tab.page.locator(".virtual-seen > li").count()).toBeLessThan(60);
  await list.evaluate((box) => box.scrollTo({ top: 0 }));
  const fresh = await server.space(await server.scripted(), "newcomer");
  await tab.page.getByText("newcomer", { exact: true }).waitFor();
  expect(fresh).toMatch(/^spc_/);
  tab.expectClean();
  await tab.close();
});
