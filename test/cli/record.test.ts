// `latchkey record`: what a person does in a window becomes steps, and nothing that was typed is written.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium, type Browser, type Page } from "playwright-core";
import { startSite } from "../outbound/browser/stage.ts";
import { startPortal, type Portal } from "../../examples/portal/portal.ts";
import { openProgram } from "../browser/program.ts";
import { eventually, PATIENCE_MS, until } from "../eventually.ts";
import { testInAll } from "../tiers.ts";
import { latchkey, startLatchkey, type Result } from "./program.ts";

const USERNAME = "demo";
const PASSWORD = "correct horse battery staple";

let portal: Portal;
let program: Awaited<ReturnType<typeof openProgram>>;
let folder: string;
let port: number;

before(async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  ({ port } = server.address() as AddressInfo);
  server.close();
  // The person: a second driver, at the same browser.
  program = await openProgram(`set -- "$@" --remote-debugging-port=${port}`);
  portal = await startPortal({ port: 0 });
  folder = mkdtempSync(join(tmpdir(), "latchkey-test-record-"));
  writeFileSync(join(folder, "account.yaml"), "account: acme\n");
});
after(async () => {
  await portal?.close();
  program?.remove();
  rmSync(folder, { recursive: true, force: true });
});

const environment = () => ({ LATCHKEY_BROWSER: program.path, LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8" });

const read = (name: string): string => readFileSync(join(folder, name), "utf8");
const write = (name: string, text: string): void => writeFileSync(join(folder, name), text);

/** Its lists of steps, without comments. */
const stepsOf = (text: string): string =>
  [...text.matchAll(/^( *)steps:\n(\1 {2}.*\n)*/gm)]
    .map(([found]) => found.replaceAll(/^ *#.*\n/gm, ""))
    .join("");

/** A person at the window: does something, and goes on once the recorder has told it. */
interface Person {
  readonly page: Page;
  /** Resolves when this window is recorded. */
  readonly ready: (page: Page) => Promise<void>;
  readonly did: (step: string, work: () => Promise<unknown>) => Promise<void>;
}

/** Records what the person does, who then closes the window or presses Ctrl-C. */
async function record(
  origin: string,
  path: string,
  options: readonly string[],
  use: (person: Person) => Promise<"close" | "Ctrl-C">,
): Promise<Result> {
  const command = ["record", origin + path, ...options, "--headless"];
  const running = startLatchkey(command, environment(), { cwd: folder });
  const browser = await eventually("the browser listens", connect, PATIENCE_MS);
  try {
    const told = async (text: string, from: number): Promise<void> =>
      await until(text, () => running.stderr().slice(from).includes(text));
    await told("Recording. Close the window", 0);
    const page = await eventually(
      "the page is there",
      () =>
        browser
          .contexts()
          .flatMap((context) => context.pages())
          .find((each) => each.url().startsWith(origin)),
      PATIENCE_MS,
    );
    page.setDefaultTimeout(60_000);
    // The recorder's script asks each second whether it is to record. This key is told, and left out.
    const ready: Person["ready"] = async (each) => {
      const from = running.stderr().length;
      await until("it records", async () => {
        await each.keyboard.press("Tab");
        await each.waitForTimeout(200);
        return /^ {2}press /m.test(running.stderr().slice(from));
      });
    };
    await ready(page);
    const did: Person["did"] = async (step, work) => {
      const from = running.stderr().length;
      await work();
      await told(`  ${step}\n`, from);
    };
    const end = await use({ page, did, ready });
    if (end === "close") await page.close();
    else running.child.kill("SIGINT");
    return await running.ended;
  } finally {
    await browser.close();
  }
}

const connect = async (): Promise<Browser | undefined> =>
  await chromium.connectOverCDP(`http://127.0.0.1:${port}`).catch(() => undefined);

async function signIn({ page, did }: Person): Promise<void> {
  await did('click button "Accept all"', async () => await page.getByText("Accept all").click());
  await did('fill textbox "Username"', async () => {
    await page.getByLabel("Username").click();
    await page.keyboard.type(USERNAME);
  });
  await did('fill textbox "Password"', async () => {
    await page.keyboard.press("Tab");
    await page.keyboard.type(PASSWORD);
  });
  await did('click button "Sign in"', async () => await page.keyboard.press("Enter"));
  await page.getByRole("button", { name: "Sign out" }).waitFor();
  // It is looked for twice a second.
  await page.waitForTimeout(1_500);
}

test("a login and what follows become a strategy and a Blueprint, without what was typed, and they run", async () => {
  const told = await record(portal.url, "/shipments", ["--blueprint", "pickup"], async (person) => {
    const { page, did } = person;
    await signIn(person);
    await did('fill textbox "Search"', async () => {
      await page.getByLabel("Search").pressSequentially("SH-0012");
      await page.getByText("1 shipment").waitFor();
    });
    await did(
      'click button "Book pickup"',
      async () => await page.getByRole("row", { name: "SH-0012" }).getByRole("button").click(),
    );
    return "close";
  });
  assert.equal(told.code, 0, told.stderr);
  assert.match(told.stdout, /^Wrote pickup\.yaml\. /);
  assert.match(told.stderr, /^ {2}fill textbox "Password"$/m);
  const text = read("pickup.yaml");
  for (const typed of [PASSWORD, USERNAME, "SH-0012"]) {
    assert.ok(!text.includes(typed), typed);
    assert.ok(!`${told.stdout}${told.stderr}`.includes(typed), typed);
  }
  assert.equal(
    stepsOf(text),
    `  steps:
    - goto: /shipments
    - dismiss: { role: button, name: Accept all }
    - fill: { role: textbox, name: Username, with: "{{ $credential.username }}" }
    - fill: { role: textbox, name: Password, with: "{{ $credential.password }}" }
    - press: { role: textbox, name: Password, key: Enter }
    - expect: { visible: { role: button, name: Sign out } }
    steps:
      - goto: /shipments
      - fill: { role: textbox, name: Search, with: "{{ $inputs.search }}" }
      - click: { role: button, name: Book pickup }
      - extract: { fields: { title: h1 } }
`,
  );
  const valid = await latchkey(["validate", "-f", "account.yaml", "-f", "pickup.yaml"], {}, { cwd: folder });
  assert.equal(valid.code, 0, valid.stderr);
  assert.match(valid.stdout + valid.stderr, /3 documents are valid/);
  write("fields.yaml", `username: ${USERNAME}\npassword: ${PASSWORD}\n`);
  const options = ["--credential", "it=fields.yaml", "--input", "search=SH-0012"];
  const ran = await latchkey(["run", "pickup.yaml", ...options], environment(), { cwd: folder });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /Shipments/);
});

async function useAll({ page, did, ready }: Person): Promise<"Ctrl-C"> {
  const button = (name: string) => page.getByRole("button", { name });
  page.on("dialog", (dialog) => void dialog.accept());
  await did('select label "Year"', async () => await page.getByLabel("Year").selectOption("2025"));
  await did('check checkbox "Drafts"', async () => await page.getByLabel("Drafts").check());
  await did(
    'fill textbox "Search" in the frame element "iframe[title="Notes"]"',
    async () => await page.frameLocator("iframe").getByLabel("Search").pressSequentially("in a frame"),
  );
  await did(
    "fill an element",
    async () => await page.locator("[contenteditable]").pressSequentially("a private thought"),
  );
  await did('click button "Ask"', async () => await button("Ask").click());
  const opening = page.waitForEvent("popup");
  await did('click button "Choose"', async () => await button("Choose").click());
  const window = await opening;
  await window.waitForLoadState();
  await ready(window);
  await did('fill textbox "Name"', async () => await window.getByLabel("Name").pressSequentially("Dana"));
  await did('click button "OK"', async () => await window.getByRole("button", { name: "OK" }).click());
  await window.close();
  const file = { name: "a.csv", mimeType: "text/csv", buffer: Buffer.from("a") };
  await did('fill button "Statement"', async () => await page.getByLabel("Statement").setInputFiles(file));
  await did(
    'fill textbox "Greeting"',
    async () => await page.getByLabel("Greeting").pressSequentially("Ada"),
  );
  await did("click an element", async () => await button("Hello Ada").click());
  const second = page.getByRole("listitem").filter({ hasText: "B" });
  await did(
    'click button in listitem with the text "B Open"',
    async () => await second.getByRole("button").click(),
  );
  await did('click link "Export"', async () => await page.getByRole("link", { name: "Export" }).click());
  await page.waitForTimeout(500);
  await did('uncheck checkbox "Drafts"', async () => await page.getByLabel("Drafts").uncheck());
  return "Ctrl-C";
}

testInAll(
  "the same actions as the driver tells them, without a browser (cli/recorded-draft)",
  "frames, windows, dialogs, files, what was typed into an editable text, and Ctrl-C",
  {},
  async (context) => {
    const site = await startSite(context, {
      "/": `<h1>All</h1><label>Year <select><option value=24>2024<option value=25>2025</select></label>
      <label><input type=checkbox> Drafts</label><iframe title=Notes src=/frame></iframe><div contenteditable>Note</div>
      <button onclick="this.textContent = confirm('Sure?') ? 'Sure' : 'Not sure'">Ask</button>
      <button onclick="window.open('/window')">Choose</button><label>Statement <input type=file></label>
      <label>Greeting <input oninput="out.textContent = 'Hello ' + this.value"></label><button id=out>Hello</button>
      <ul><li>A <button>Open</button><li>B <button>Open</button></ul><a href=/file download>Export</a>`,
      "/frame": "<label>Search <input></label>",
      "/window": "<label>Name <input></label><button>OK</button>",
      "/file": "a,b",
    });
    const told = await record(site.origin, "/", ["--blueprint", "all", "-o", "made/all.yaml"], useAll);
    assert.equal(told.code, 0, told.stderr);
    const text = read("made/all.yaml");
    for (const typed of ["in a frame", "private", "Dana", "Ada"]) assert.ok(!text.includes(typed), typed);
    assert.equal(
      stepsOf(text),
      `    steps:
      - goto: ${site.origin}/
      - select: { label: Year, option: "25" }
      - check: { role: checkbox, name: Drafts }
      - fill: { role: textbox, name: Search, frame: { css: 'iframe[title="Notes"]' }, with: "{{ $inputs.search }}" }
      - fill: { css: "[contenteditable]", with: "{{ $inputs.value }}" }
      - dialog: { answer: accept }
      - click: { role: button, name: Ask }
      - popup:
          click: { role: button, name: Choose }
          steps:
            - fill: { role: textbox, name: Name, with: "{{ $inputs.name }}" }
            - click: { role: button, name: OK }
      - upload: { role: button, name: Statement, file: upload_1 }
      - fill: { role: textbox, name: Greeting, with: "{{ $inputs.greeting }}" }
      - click: { role: button, name: "Hello {{ $inputs.greeting }}" }
      - click: { role: button, in: { role: listitem, has_text: B Open } }
      - download: { click: { role: link, name: Export } }
    steps:
      - goto: ${site.origin}/
      - uncheck: { role: checkbox, name: Drafts }
      - extract: { fields: { title: h1 } }
`,
    );
    const valid = await latchkey(["validate", "-f", "account.yaml", "-f", "made"], {}, { cwd: folder });
    assert.equal(valid.code, 0, valid.stderr);
  },
);

test("what can't be recorded is refused before a window opens", async () => {
  write("there.yaml", "");
  for (const [options, says] of [
    [["https://a.example"], /^What is to be written\? --strategy ID, --blueprint KEY, or both\.$/m],
    [
      ["https://a.example", "--blueprint", "there"],
      /^there\.yaml already exists\. Choose another name, or --output\.$/m,
    ],
    [["file:///etc/passwd", "--strategy", "it"], /It must be a URL that begins with http:\/\/ or https:\/\//],
  ] as const) {
    const told = await latchkey(["record", ...options], environment(), { cwd: folder });
    assert.equal(told.code, 2, told.stderr);
    assert.match(told.stderr, says);
  }
});
