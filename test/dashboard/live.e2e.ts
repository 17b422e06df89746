// docs/browser.md#watching-a-run: a real run whose pages an operator watches, in a real Chromium.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { readPng } from "#lib/png.ts";
import { axeLightAndDark } from "../axe.ts";
import { openProgram } from "../browser/program.ts";
import { connect } from "../caller.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { until } from "../eventually.ts";
import { openDashboardStage, type DashboardStage } from "./dashboard-stage.ts";

const PASSWORD = "canary-password-6c41";
/** No other page has this color. */
const OF_LOGIN = 0x00ff88;
const COVER = 0x868e96;
/** The colors of the pages of the node, by their number. */
const OF_PAGES = [0x1c7ed6, 0xe8590c, 0x5f3dc4, 0x2b8a3e, 0xc2255c];
const hex = (color: number): string => `#${color.toString(16).padStart(6, "0")}`;

const LOGIN = `<!doctype html><title>Sign in</title><body style="background:${hex(OF_LOGIN)}">
<form method=post action=/session><label>Password <input type=password name=password></label><button>Sign in</button></form>`;
/** It shows the password as text, and a field with something typed. */
const pageOf = (
  number: number,
): string => `<!doctype html><title>Page ${number}</title><body style="margin:0">
<div style="position:absolute;left:20px;top:100px;width:300px;height:40px">${PASSWORD}</div>
<input style="position:absolute;left:20px;top:200px;width:300px;height:40px;box-sizing:border-box" value="typed by hand">
<h1 style="position:absolute;left:400px;top:20px;margin:0">Page ${number}</h1>
<div style="position:absolute;left:400px;top:100px;width:200px;height:200px;background:${hex(OF_PAGES[number] ?? 0)}"></div>
<script>if (${number} === 4) fetch("/released").then(() => document.body.append(Object.assign(document.createElement("h1"), { textContent: "Released" })));</script>`;

const documents = (url: string): readonly string[] => [
  `strategy: strat_watched
account: acme
hosts: ["${url}"]
fields: [{ key: password, type: password }]
login:
  type: browser
  steps:
    - goto: /login
    - wait: { for: 1500ms }
    - fill: { label: Password, with: "{{ $credential.password }}" }
    - wait: { for: 1500ms }
    - click: { role: button, name: Sign in }
    - expect: { visible: { role: heading, name: Page 0 } }
  expired: { url: /login** }`,
  `blueprint: watched
account: acme
credentials: { portal: { strategy: strat_watched } }
nodes:
  - id: read
    type: browser
    credential: portal
    steps:
${[1, 2, 3].map((number) => `      - goto: /page/${number}\n      - wait: { for: 2s }`).join("\n")}
      - goto: /page/4
      - expect: { visible: { role: heading, name: Released } }
        timeout: 200s
      - extract: { fields: { title: h1 } }
  - { id: out, type: output, refKey: out, from: read }`,
];

let program: Awaited<ReturnType<typeof openProgram>>;
let target: Target;
let stage: DashboardStage;
const released = Promise.withResolvers<void>();

before(async () => {
  program = await openProgram();
  target = await openTarget();
  const isIn = (cookie: string | undefined): boolean => cookie === "sid=canary-cookie-5577";
  target.on("GET /login", { html: LOGIN });
  target.on("POST /session", ({ body }) => ({
    status: 303,
    headers: {
      location: body.includes(PASSWORD) ? "/page/0" : "/login",
      "set-cookie": "sid=canary-cookie-5577; Path=/; HttpOnly",
    },
  }));
  for (const number of [0, 1, 2, 3, 4])
    target.on(`GET /page/${number}`, ({ headers }, before) => {
      // The session ends once in the middle of the run.
      if (!isIn(headers.cookie) || (number === 3 && before === 0))
        return { status: 303, headers: { location: "/login?again" } };
      return { html: pageOf(number) };
    });
  target.on("GET /released", async () => {
    await released.promise;
    return { text: "" };
  });
  stage = await openDashboardStage({ LATCHKEY_BROWSER: program.path });
  await stage.operators.installation.apply(...documents(target.url));
});
after(async () => {
  released.resolve();
  await stage?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
  program?.remove();
});

interface Watched {
  readonly pictures: Buffer[];
  asked: number;
}

/** What the dashboard asks for, and the pictures that it gets. */
function record(page: Page): Watched {
  const watched: Watched = { pictures: [], asked: 0 };
  page.on("request", (request) => {
    if (request.url().endsWith("/live")) watched.asked++;
  });
  page.on("response", (response) => {
    if (response.url().includes("/live/picture") && response.ok())
      void response.body().then(
        (body) => watched.pictures.push(body),
        () => undefined,
      );
  });
  return watched;
}

/** How often each color is in a part of the picture. */
function colorsIn(
  png: Buffer,
  [left, top, right, bottom]: readonly number[] = [],
): ReadonlyMap<number, number> {
  const { width, height, rgb } = readPng(png);
  const counts = new Map<number, number>();
  for (let y = top ?? 0; y < (bottom ?? height); y += 1)
    for (let x = left ?? 0; x < (right ?? width); x += 1) {
      const color = rgb.readUIntBE((y * width + x) * 3, 3);
      counts.set(color, (counts.get(color) ?? 0) + 1);
    }
  return counts;
}

const countPictures = async (): Promise<number> =>
  (await stage.operators.db.query("select 1 from live_picture where png is not null")).length;

/** As a browser does when another tab is chosen. */
const setVisibility = async (page: Page, state: "hidden" | "visible"): Promise<void> =>
  void (await page.evaluate(`
    Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true });
    Object.defineProperty(document, "hidden", { value: ${state === "hidden"}, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
    window.dispatchEvent(new Event("visibilitychange"));`));

test(
  "an operator sees the pages of a run while its steps are done: masked, never a login, and nothing after its end",
  { timeout: 300_000 },
  async () => {
    const credential_id = await connect(stage.caller, "strat_watched", { password: PASSWORD });
    const { body, text } = await stage.caller.post("/blueprints/watched/trigger", { credential_id });
    assert.ok(body.id, text);
    const page = await stage.openPage("reviewer", `/runs/${body.id}`, {
      viewport: { width: 1_440, height: 1_000 },
    });
    const watched = record(page);
    const live = page.getByRole("region", { name: "Live" });
    const picture = live.getByRole("img");
    await live.waitFor({ timeout: 60_000 });

    // The last page stays until it is released.
    await until("the last page is there", () => target.seen("GET /released").length > 0);
    const before = watched.pictures.length;
    await until("a picture of it is seen", () => watched.pictures.length > before);
    await until("the step is named", async () => /steps\[7\] \(expect/.test(await live.innerText()));
    assert.match((await picture.getAttribute("alt")) ?? "", /Fields and secrets are covered/);
    assert.deepEqual(await axeLightAndDark(page), []);
    const folder = process.env["LATCHKEY_PICTURES"];
    if (folder !== undefined) await page.screenshot({ path: `${folder}/live.png`, fullPage: true });

    // A tab that is not visible does not watch: no more pictures are taken, and the last one is removed.
    await setVisibility(page, "hidden");
    await until("its picture is removed", async () => (await countPictures()) === 0);
    const { asked } = watched;
    await page.waitForTimeout(3_000);
    assert.equal(watched.asked, asked);
    await setVisibility(page, "visible");
    await until("there is a picture again", async () => (await countPictures()) === 1);

    released.resolve();
    const { body: ended } = await stage.caller.waitForRun(body.id, 100_000);
    assert.equal(ended.status, "completed");
    assert.equal(await countPictures(), 0);
    await live.waitFor({ state: "detached" });
    const after = watched.asked;
    await page.waitForTimeout(2_500);
    assert.equal(watched.asked, after, "a run that has ended is not watched");

    // Two logins, and the sign-in in place of a page of the node.
    assert.equal(target.seen("POST /session").length, 2);
    assert.ok(target.seen("GET /login").length >= 3);
    const different = new Set(
      watched.pictures.map((each) => createHash("sha256").update(each).digest("hex")),
    );
    assert.ok(different.size >= 3, `${different.size} different pictures of ${watched.pictures.length}`);
    for (const png of watched.pictures) {
      assert.equal(colorsIn(png).get(OF_LOGIN), undefined, "no page of a login");
      for (const top of [100, 200]) {
        const shown = [...colorsIn(png, [20, top, 320, top + 40]).keys()].filter(
          (color) => color !== 0xffffff,
        );
        assert.deepEqual(shown, [COVER], `only the cover is seen at ${top}`);
      }
      const [color] = [...colorsIn(png, [410, 110, 590, 290]).keys()];
      assert.ok(OF_PAGES.includes(color ?? 0), "what is not secret is shown");
    }
    assert.deepEqual(stage.problems, []);
    await page.context().close();
  },
);

test("a role that may not see results has no live page", async () => {
  const { body } = await stage.caller.post("/blueprints/plain-list/trigger", { data: "[]" });
  const viewer = await stage.operators.operator("viewer");
  const answer = await (await stage.operators.holding(viewer)).send("POST", `/runs/${body.id}/live`);
  assert.equal(answer.status, 403);
});
