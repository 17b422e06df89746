// docs/browser.md#steps: files out of pages and into them, and pictures on the way.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openProgram } from "../browser/program.ts";
import { dataOf, openBench, type Bench } from "./bench.ts";

const PAGE = `<!doctype html><h1>Files</h1>
<a href="/export.csv" download>From the server</a><a href="/endless.csv" download>Endless</a>
<button id=made>Made by the page</button><label>Statement <input type=file></label><p></p>
<script>
  document.querySelector("#made").onclick = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(["no,total\\n9,90\\n"]));
    link.download = "made.csv";
    link.click();
  };
  document.querySelector("input").onchange = async ({ target }) => {
    const [file] = target.files;
    document.querySelector("p").textContent = file.name + ": " + (await file.text());
  };
</script>`;

const downloading = (name: string, click: string, more = "") => `blueprint: ${name}
account: acme
hosts: ["{TARGET}"]
nodes:
  - id: file
    type: browser
    retry: { attempts: 1 }
    steps:
      - goto: "{TARGET}/files"
      - download: { click: ${click} }${more}
  - { id: rows, type: parse, from: file, format: csv }
  - { id: out, type: output, refKey: out, from: rows }
`;
const UPLOADING = `blueprint: upload
account: acme
hosts: ["{TARGET}"]
nodes:
  - { id: statement, type: input, refKey: statement }
  - id: read
    type: browser
    steps:
      - goto: "{TARGET}/files"
      - upload: { label: Statement, file: statement }
      - screenshot: true
      - wait: { text: "statement: " }
      - extract: { fields: { note: p } }
  - { id: out, type: output, refKey: out, from: read }
`;

let program: Awaited<ReturnType<typeof openProgram>>;
let bench: Bench;

before(async () => {
  program = await openProgram();
  bench = await openBench(
    [
      downloading("server", "{ role: link, name: From the server }"),
      downloading("page", "{ role: button, name: Made by the page }"),
      downloading("none", "{ role: heading, name: Files }", "\n        timeout: 3s"),
      downloading("endless", "{ role: link, name: Endless }", "\n        timeout: 5s"),
      UPLOADING,
    ],
    undefined,
    { LATCHKEY_BROWSER: program.path },
  );
  bench.target.on("GET /files", { html: PAGE });
  const csv = { "content-type": "text/csv", "content-disposition": "attachment" };
  bench.target.on("GET /export.csv", { text: "no,total\n1,10\n2,20\n", headers: csv });
  bench.target.on("GET /endless.csv", { text: "no,total\n", headers: csv, delayMs: 15_000 });
});
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  program?.remove();
});

test("a file that a page gives is the node's value, from the server or made by the page", async () => {
  const server = await bench.run("server");
  assert.equal(server.status.status, "completed", server.detail ?? "");
  assert.deepEqual(dataOf(server), [
    { no: "1", total: "10" },
    { no: "2", total: "20" },
  ]);
  const page = await bench.run("page");
  assert.equal(page.status.status, "completed", page.detail ?? "");
  assert.deepEqual(dataOf(page), [{ no: "9", total: "90" }]);
});

test("a click that gives no file, and a file that does not come in time, fail the step", async () => {
  for (const name of ["none", "endless"]) {
    const run = await bench.run(name);
    assert.equal(run.kind, "page_changed");
    assert.match(run.detail ?? "", /^Node file: steps\[1\] \(download .*\): the click gave no file/);
  }
});

test("an input is uploaded by its name, and a screenshot is shown to operators", async () => {
  const run = await bench.run("upload", { statement: "the statement's text" });
  assert.equal(run.status.status, "completed", run.detail ?? "");
  assert.deepEqual(dataOf(run), [{ note: "statement: the statement's text" }]);
  const told = await bench.installation.command("runs", "show", run.id, "--json");
  const { steps } = JSON.parse(told.stdout) as {
    readonly steps: readonly {
      readonly evidence: readonly { readonly reason: string; readonly step: string }[];
    }[];
  };
  assert.deepEqual(
    steps[0]?.evidence.map(({ reason, step }) => [reason, step]),
    [["screenshot", "steps[2] (screenshot)"]],
  );
});
