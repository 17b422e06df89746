// docs/browser.md#secrets: a portal that repeats what was typed wherever a page can. It is found nowhere outside the vault.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { chmodSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { readPng } from "#lib/png.ts";
import { openProgram } from "../browser/program.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { PATIENCE_MS } from "../eventually.ts";
import { install, type Installation } from "../service.ts";
import { dumpDatabase, formsOf, readFolder, recordAnswers, search, type Surface } from "./canary-search.ts";

/** All of one width and length, so that two pictures differ only where a secret can be seen. */
const letters = (): string => Array.from(randomBytes(32), (byte) => "abcdefghijklmnop"[byte & 15]).join("");
const [COOKIE, TOKEN] = [letters(), letters()];

/** `say` repeats a text in every way that a page has. */
const SCRIPT = `
const say = (text) => {
  document.title = text;
  history.replaceState(null, "", location.pathname + "?said=" + text + "#" + text);
  localStorage.said = sessionStorage.said = text;
  console.error(text); console.error({ text }); console.log(text);
  const all = [
    "<h1>" + text + "</h1>", "<p>" + text.slice(0, 16) + "<b>" + text.slice(16) + "</b></p>",
    "<button aria-label='" + text + "'>Send</button>", "<button>Send " + text + "</button>", "<button>Send to " + text + "</button>", "<img alt='" + text + "'>",
    "<p>" + btoa(text) + "</p>", "<p title='" + text + "'>title</p>", "<input value='" + text + "'>", "<select><option>" + text + "</select>",
    "<a href='/go?" + text + "'>link</a>", "<iframe srcdoc='" + text + "'></iframe>", "<style>em::before { content: '" + text + "' }</style><em></em>",
  ];
  document.querySelector("main").innerHTML = all.map((each) => "<div>" + each + "</div>").join("");
  fetch("http://" + text + ".example.test/").catch(() => {});
  setTimeout(() => { throw new Error(text); });
  setTimeout(() => alert(text), 50);
};`;
const LOGIN = `<!doctype html><style>* { font: 14px monospace }</style><main>
<label>Password <input type=password></label><button>Sign in</button></main><script>${SCRIPT}
document.querySelector("button").onclick = async () => {
  const password = document.querySelector("input").value;
  const answer = await fetch("/session", { method: "POST", body: password });
  say(password);
  if (answer.ok) sessionStorage.token = await answer.text();
  document.querySelector("main").insertAdjacentHTML("beforeend", answer.ok ? "<h2>Welcome</h2>" : "<h2>Refused</h2>");
};</script>`;
const PAGE = `<!doctype html><style>* { font: 14px monospace }</style><main></main><script>${SCRIPT}
fetch("/password").then((answer) => answer.text()).then((text) => { say(text); document.querySelector("main").insertAdjacentHTML("beforeend", "<h2>Ready</h2>"); });</script>`;

const STRATEGY = (url: string, name: string, more = "") => `strategy: strat_${name}
account: acme
hosts: ["${url}"]
fields: [{ key: password, type: password }]
login:
  type: browser
  steps:
    - goto: /login
    - dialog: { answer: accept }
    - fill: { label: Password, with: "{{ $credential.password }}" }
    - click: { role: button, name: Sign in }
    - expect: { visible: { role: heading, name: Welcome }, rejected: { role: heading, name: Refused } }${more}
  session: { headers: { Authorization: "Bearer {{ $storage.session.token }}" } }
  cache: 8h
`;
const BLUEPRINT = (name: string, strategy: string, last: string) => `blueprint: ${name}
account: acme
credentials: { portal: { strategy: strat_${strategy} } }
nodes:
  - id: read
    type: browser
    credential: portal
    evidence: always
    retry: { attempts: 1 }
    steps:
      - goto: /page
      - dialog: { answer: accept }
      - wait: { visible: { role: heading, name: Ready } }
      - ${last}
  - { id: out, type: output, refKey: out, from: read }
`;
const EXTRACT = `extract: { fields: { said: h1, parts: p, coded: "div:nth-of-type(7) p", link: "a@href", title: "p[title]@title" } }`;
/** What fails, each in its own words. */
const WAYS = {
  reads: ["portal", EXTRACT],
  misses: ["portal", `click: { role: button, name: Sent }\n        timeout: 1s\n      - ${EXTRACT}`],
  doubts: ["portal", `click: { role: button, name: Send }\n        timeout: 1s\n      - ${EXTRACT}`],
  refused: ["portal", EXTRACT],
  closed: ["closed", EXTRACT],
} as const;

let program: Awaited<ReturnType<typeof openProgram>>;
let target: Target;
let folder: string;
let installation: Installation & AsyncDisposable;
let caller: Caller;
let recorded: ReturnType<typeof recordAnswers>;
/** The password that `/page` repeats. */
let current = "";
/** Of the folder for temporary files, while a browser had the password. */
const during: Surface[] = [];

before(async () => {
  program = await openProgram();
  target = await openTarget();
  folder = mkdtempSync(join(tmpdir(), "latchkey-test-canary-"));
  chmodSync(folder, 0o755);
  target.on("GET /login", { html: LOGIN });
  target.on("GET /page", { html: PAGE });
  target.on("GET /password", () => {
    during.push(...filesOf(folder));
    return { text: current };
  });
  target.on("POST /session", ({ body }) =>
    body === current
      ? { text: TOKEN, headers: { "set-cookie": `sid=${COOKIE}; Path=/; Max-Age=3600` } }
      : { status: 401 },
  );
  installation = await install({ LATCHKEY_BROWSER: program.path, TMPDIR: folder, LATCHKEY_ACCESS_LOG: "on" });
  await installation.apply(
    "account: acme",
    STRATEGY(target.url, "portal"),
    STRATEGY(
      target.url,
      "closed",
      '\n    - fill: { label: Password, with: "{{ $credential.password }}" }\n      timeout: 1s',
    ),
    ...Object.entries(WAYS).map(([name, [strategy, last]]) => BLUEPRINT(name, strategy, last)),
  );
  recorded = recordAnswers();
  const service = await installation.serveProcess({
    DEBUG: "pw:*",
    DEBUG_FILE: join(folder, "debug"),
    PWDEBUG: "console",
    NODE_DEBUG: "child_process",
  });
  caller = openCaller(service.url, await installation.createKey("acme"));
});
after(async () => {
  recorded?.stop();
  await installation?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
  program?.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Files of a folder that others use at the same time. */
function filesOf(root: string): readonly Surface[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" }).flatMap((name) => {
    try {
      const path = join(root, name);
      return lstatSync(path).isFile() ? [{ place: `file ${name}`, bytes: readFileSync(path) }] : [];
    } catch {
      return [];
    }
  });
}

/** One run with a password of its own; gives its end, and the pictures of its pages. */
async function go(
  name: keyof typeof WAYS,
  password: string,
): Promise<{ readonly status: string; readonly pictures: readonly Buffer[] }> {
  const [strategy] = WAYS[name];
  const credential_id = await connect(caller, `strat_${strategy}`, { password });
  current = name === "refused" ? "another" : password;
  const { body } = await caller.post(`/blueprints/${name}/trigger`, { credential_id });
  const { body: ended } = await caller.waitForRun(body.id, PATIENCE_MS);
  if (ended.status === "completed")
    await caller.get(`/blueprint-runs/${body.id}/results?deliveryMethod=direct`);
  const kept = mkdtempSync(join(folder, "pictures-"));
  const told = await installation.command("runs", "show", body.id, "--json", "--pictures", kept);
  recorded.answers.push({ place: `runs show ${name}`, bytes: Buffer.from(told.stdout + told.stderr) });
  return {
    status: ended.status,
    pictures: readdirSync(kept)
      .toSorted()
      .map((file) => readFileSync(join(kept, file))),
  };
}

test(
  "what a page repeats of a login is in no row, file, log, answer, message or picture",
  { timeout: 300_000 },
  async () => {
    const secrets = [COOKIE, TOKEN];
    const statuses: Record<string, string> = {};
    let pictures = 0;
    for (const name of Object.keys(WAYS) as (keyof typeof WAYS)[]) {
      const passwords = [letters(), letters()];
      secrets.push(...passwords);
      const [one, other] = [await go(name, passwords[0] ?? ""), await go(name, passwords[1] ?? "")];
      assert.equal(one.status, other.status);
      statuses[name] = one.status;
      // Only the secret differs between the two.
      assert.equal(one.pictures.length, other.pictures.length);
      for (const [index, picture] of one.pictures.entries()) {
        pictures++;
        assert.ok(
          readPng(picture).rgb.equals(readPng(other.pictures[index] ?? picture).rgb),
          `${name}: a picture`,
        );
      }
    }
    assert.deepEqual(statuses, {
      reads: "completed",
      misses: "failed",
      doubts: "failed",
      refused: "failed",
      closed: "failed",
    });
    assert.ok(pictures >= 4, `${pictures} pictures`);
    assert.ok(during.length > 3, "a browser had files while it was looked at");
    const { db } = installation.database;
    const surfaces = [
      ...(await dumpDatabase(db)),
      ...readFolder(installation.dataFolder),
      ...filesOf(folder),
      ...during,
      { place: "standard error", bytes: Buffer.from(installation.logs()) },
      ...recorded.answers,
    ];
    for (const place of [
      "public.run_step.log",
      "public.run.error_detail",
      "standard error",
      "runs show misses",
    ])
      assert.ok(
        surfaces.some((each) => each.place === place && each.bytes.length > 0),
        place,
      );
    // The page did say them.
    const shown = surfaces
      .filter(({ place }) => place === "runs show misses")
      .map(({ bytes }) => String(bytes));
    assert.ok(shown.every((text) => text.split("[REDACTED]").length > 5));
    // The passwords of the form itself are sent to us, never back.
    const found = secrets.flatMap((secret) => search(surfaces, formsOf(secret)));
    assert.deepEqual([...new Set(found.map(({ place, form }) => `${place}: ${form}`))], []);
    assert.ok(!installation.logs().includes("pw:"), "the driver is silent");
  },
);
