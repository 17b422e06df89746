/** Pages at which nothing can be filled in: what happened, whether anything was saved, what to do next, and who asked. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "cheerio";
import { renderForm } from "#hosted/pages/form-page.ts";
import { endView, renderFrame } from "#hosted/pages/frame-pages.ts";
import * as messages from "#hosted/pages/message-pages.ts";
import { renderOpening, renderWindow } from "#hosted/pages/window-pages.ts";
import { PAGE, shell } from "./form-pages.ts";

test("where the sender is known, pages without a form name who helps", () => {
  const of = (page: unknown): string => load(String(page)).text();
  for (const render of [messages.renderUsed, messages.renderExpired]) {
    assert.match(of(render(shell())), /Acme Inc\./);
    assert.doesNotMatch(of(render(shell("en", { brand: null }))), /Acme Inc\.|\{account\}/);
  }
  const failed = [
    renderForm(shell(), { ...PAGE, notice: "failed" }),
    messages.renderProblem(shell(), "nothing"),
    endView(shell(), "internal").body,
    endView(shell(), "failed").body,
  ];
  for (const page of failed) assert.match(of(page), /If it fails again, please tell Acme Inc\./);
});

test("a page says whether anything was saved, names the field that was too large, and when to try again", () => {
  const of = (page: unknown): string =>
    load(String(page).replaceAll("<p", " <p"))("main").text().replace(/\s+/g, " ");
  assert.match(of(messages.renderProblem(shell(), "nothing")), /Nothing was saved\. Please wait a minute/);
  assert.match(of(messages.renderProblem(shell(), "saved")), /saved all the same/);
  assert.match(of(messages.renderProblem(shell(), "unknown")), /If the link then says/);
  assert.match(of(messages.renderTooLarge(shell(), "Email")), /“Email” is larger than this form can take/);
  const limited = (ms: number): string => of(messages.renderLimited(shell(), "Northwind", ms, {}));
  assert.match(limited(15 * 60_000), /You can try again in 15 minutes\./);
  assert.match(limited(14 * 60_000 + 1), /You can try again in 15 minutes\./);
  assert.match(of(messages.renderTooMany(shell("de"), 20_000)), /Sie können es in 20 Sekunden noch einmal/);
  const windowOf = (end: "refused" | "failed"): string => of(renderWindow(shell(), end, "Northwind"));
  assert.match(windowOf("refused"), /Northwind is not connected You cancelled there, or did not agree/);
  assert.match(windowOf("failed"), /could not be finished.*technical problem, not a mistake of yours/);
  // A tick stands for nothing but what is done.
  const tick = /m5 12\.5 4\.5 4\.5L19 7\.5/;
  for (const page of [
    messages.renderUsed(shell()),
    renderOpening(shell()),
    renderWindow(shell(), "refused", "X"),
  ])
    assert.doesNotMatch(String(page), tick);
  assert.match(String(renderWindow(shell(), "done", "X")), tick);
});

test("what a frame or its window shows before anything is known of the session has the sender's name and colour", () => {
  const start = { sessionId: "ecs_x", origin: "https://app.acme.example", path: "/embed/v1/ecs_x" };
  for (const page of [renderFrame(shell(), start), renderOpening(shell())]) {
    const $ = load(String(page));
    assert.match($("main .brand").first().text(), /Acme Inc\./);
    assert.match(String($("link[rel=stylesheet]").last().attr("href")), /(accent|themes)-3355ff\.css$/);
  }
});
