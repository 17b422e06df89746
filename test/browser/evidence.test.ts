// docs/browser.md#when-a-step-fails: what operators see of a page, on a real browser: no secret and no value of a field.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { StepFailure } from "#answers/browser/step-failure.ts";
import { limits } from "#domain/limits.ts";
import type { NewEvidence } from "#domain/page-evidence.ts";
import { browseAs } from "#engine/login/browse.ts";
import { readPng, writePng } from "#lib/png.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { doSteps, openStage, type Stage } from "./stage.ts";

const SECRET = "canary-secret-77aa55";
/** One box for each way to show the secret; each is 300 by 30 pixels. */
const WAYS = [
  SECRET,
  `<input value="${SECRET}">`,
  `<textarea>${SECRET}</textarea>`,
  `<div contenteditable>typed by hand</div>`,
  `<select><option>an option</select>`,
  `<b title="${SECRET}">title</b>`,
  `<i class=before></i>`,
  `<i class=attr data-text="${SECRET}"></i>`,
  `canary-<b>secret</b>-<i>77aa55</i>`,
  SECRET.split("")
    .map((letter) => `<span>${letter}</span>`)
    .join(""),
  `<canvas width=300 height=30></canvas>`,
  `<iframe srcdoc="${SECRET}"></iframe>`,
  `<host-element></host-element>`,
  `<p style="text-transform: uppercase">${SECRET}</p>`,
  encodeURIComponent(SECRET.replace("-", "–")).replace("%E2%80%93", "-"),
  Buffer.from(SECRET).toString("base64"),
  `<svg width=300 height=30><text y=20>${SECRET}</text></svg>`,
];
const PAGE = `<!doctype html><meta charset=utf-8><title>Page</title>
<style>
  body { margin: 0; }
  .way { position: absolute; left: 20px; width: 300px; height: 30px; overflow: hidden; font: 14px monospace; }
  .way > * { width: 300px; height: 30px; margin: 0; border: 0; box-sizing: border-box; display: block; }
  .way > b, .way > i, .way > span { display: inline; }
  .before::before { content: "${SECRET}"; }
  .attr::after { content: attr(data-text); }
  #open { position: absolute; left: 400px; top: 40px; }
</style>
<div id=open><h1>Accounts</h1><p>Nothing is secret here.</p><label>Code <input value="typed-4711"></label><button>Log in</button></div>
${WAYS.map((way, index) => `<div class=way style="top:${index * 40}px">${way}</div>`).join("")}
<script>
  const host = document.querySelector("host-element");
  host.attachShadow({ mode: "closed" }).textContent = "${SECRET}";
  const drawn = document.querySelector("canvas").getContext("2d");
  drawn.fillText("${SECRET}", 0, 20);
  console.error("no session for ${SECRET}");
  if (location.search === "?moving") setInterval(() => (document.querySelector(".way").style.left = Math.random() * 90 + "px"), 5);
  setTimeout(() => { throw new Error("broken"); });
  fetch("http://elsewhere.test:8099/beacon").catch(() => {});
</script>`;

let target: Target;
let stage: Stage;

before(async () => {
  target = await openTarget();
  target.on("GET /page", { html: PAGE });
  target.on("GET /other", { html: "<!doctype html><title>Other</title><h1>Nothing here</h1>" });
  target.on("GET /noise", {
    html: `<!doctype html><style>body { margin: 0 } img { width: 1280px; height: 720px; image-rendering: pixelated }</style>
      <img src="data:image/png;base64,${writePng({ width: 640, height: 360, rgb: randomBytes(640 * 360 * 3) }).toString("base64")}">`,
  });
  stage = await openStage(target.url, undefined, [SECRET]);
});
after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
});

async function evidenceOf(url: string): Promise<NewEvidence> {
  return await stage.browse(async (browser) => {
    const failing = doSteps(browser, [
      { goto: url },
      { wait: { for: "100ms" } },
      { click: { role: "button", name: "Log in" } },
      { expect: { visible: { role: "button", name: "Log in" } } },
      { click: { role: "button", nth: 1 }, timeout: "50ms" },
    ]);
    const failure = await failing.then(
      () => assert.fail("the last step fails"),
      (error: unknown) => error,
    );
    assert.ok(failure instanceof StepFailure && failure.evidence !== null, String(failure));
    return failure.evidence;
  });
}

test("a failed step has the page's outline, console and refused requests, without secrets and values of fields", async () => {
  const evidence = await evidenceOf("/page?token=in-the-query");
  assert.equal(evidence.step, 'steps[4] (click button "" (nth 1))'.replace(' ""', ""));
  assert.equal(evidence.url, `${target.url}/page`);
  assert.match(evidence.outline, /heading "Accounts" \[level=1\]/);
  assert.match(evidence.outline, /textbox "Code"\n/);
  assert.match(evidence.outline, /button "Log in"/);
  assert.deepEqual(
    evidence.console.filter((line) => !line.includes("Failed to load")),
    ["no session for [REDACTED]", "broken"],
  );
  assert.deepEqual(
    evidence.refused.map(({ origin }) => origin),
    ["http://elsewhere.test:8099"],
  );
  const { picture, ...texts } = evidence;
  for (const hidden of [SECRET, "typed-4711", "typed by hand", "in-the-query"])
    assert.ok(!JSON.stringify(texts).includes(hidden), hidden);
  assert.ok(picture !== null, "the page stands still");
  const { width, height } = readPng(picture);
  assert.deepEqual([width, height], [1280, 720]);
  checkCovered(picture);
});

/** Only the covers are seen of what is secret, and the rest of the page is shown. */
function checkCovered(png: Buffer): void {
  const { width, rgb } = readPng(png);
  const colorsOf = (left: number, top: number, right: number, bottom: number): Set<number> => {
    const colors = new Set<number>();
    for (let y = top; y < bottom; y += 1)
      for (let x = left; x < right; x += 1) colors.add(rgb.readUIntBE((y * width + x) * 3, 3));
    return colors;
  };
  for (const [index, way] of WAYS.entries()) {
    const shown = [...colorsOf(20, index * 40, 320, index * 40 + 30)].filter((color) => color !== 0xffffff);
    assert.deepEqual(shown, [0x868e96], `only the cover is seen of ${way}`);
  }
  assert.ok(colorsOf(400, 40, 700, 120).size > 5, "what is not secret is shown");
}

test("a live picture is covered like one of evidence, and is of the page and step that were begun last", async () => {
  await stage.browse(async (browser) => {
    assert.equal(await browser.picture(), null, "nothing was begun");
    await doSteps(browser, [{ goto: "/page" }, { wait: { for: "100ms" } }]);
    const live = await browser.picture();
    assert.equal(live?.step, "steps[1] (wait 100ms)");
    checkCovered(live.png);
  });
});

test("there is no live picture where a session has ended, in a login, or where `evidence` is off", async () => {
  const means = { ...stage.means, expired: { visible: { role: "heading", name: "Accounts" } } };
  const signal = new AbortController().signal;
  await browseAs(means, signal, async (browser) => {
    await doSteps(browser, [{ goto: "/other" }]);
    assert.notEqual(await browser.picture(), null);
    await assert.rejects(doSteps(browser, [{ goto: "/page" }]), StepFailure);
    assert.equal(await browser.picture(), null);
    await doSteps(browser, [{ goto: "/other" }]);
    assert.notEqual(await browser.picture(), null);
  });
  await stage.browse(async (browser) => {
    await doSteps(browser, [{ goto: "/other" }], { looks: false });
    assert.equal(await browser.picture(), null);
  });
  await stage.logIn(async (browser) => {
    await doSteps(browser, [{ goto: "/other" }], { place: "login" });
    assert.equal(await browser.picture(), null);
  });
});

test("a live picture of more than 200 kB is made smaller", async () => {
  const png = await stage.browse(async (browser) => {
    await doSteps(browser, [{ goto: "/noise" }]);
    return (await browser.picture())?.png ?? Buffer.alloc(0);
  });
  assert.ok(png.length > 0 && png.length <= limits.livePictureBytesMax, `${png.length} bytes`);
  assert.ok(readPng(png).width < 1280);
});

test("there is no picture of a page that does not stand still", async () => {
  assert.equal((await evidenceOf("/page?moving")).picture, null);
});

test("a place is marked, and a picture keeps its pixels when it is written and read again", async () => {
  const look = await stage.browse(async (browser) => {
    await doSteps(browser, [{ goto: "/page" }, { wait: { for: "100ms" } }]);
    return await browser.look(browser.page, browser.page.getByRole("button"));
  });
  const pixels = readPng(look?.picture ?? Buffer.alloc(0));
  const marked = Array.from({ length: pixels.width * pixels.height }, (_, at) =>
    pixels.rgb.readUIntBE(at * 3, 3),
  ).filter((color) => color === 0xe03131).length;
  assert.ok(marked > 200 && marked < 2_000, `${marked} pixels of a mark`);
  assert.ok(readPng(writePng(pixels)).rgb.equals(pixels.rgb));
});
