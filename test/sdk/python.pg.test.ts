/** The Python SDK as its users get it: a wheel, installed by pip, against a real service, with Debian's httpx. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { must } from "#lib/assert.ts";
import { OPERATIONS } from "../../scripts/generate/public-api/operations.ts";
import { sdkSamples } from "../../scripts/generate/sdk-samples.ts";
import { openStage } from "../api/stage.ts";
import { submitHostedForm } from "../caller.ts";
import { unpackDebian } from "../debian-packages.ts";
import { openCutter } from "./cutter.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PYTHON = "/usr/bin/python3";
/** Python alone; what is not must fit this machine's. */
const ANY = "httpx httpcore h11 anyio sniffio idna certifi rfc3986 typing-extensions";
const OWN = "brotli setuptools pkg-resources wheel pip";
const packages = (names: string): string[] => names.split(" ").map((name) => `python3-${name}`);
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "latchkey-python-"));
after(() => rmSync(folder, { recursive: true }));

/** Builds the wheel and installs it without a network; gives the environment in which Python has it, and Debian's httpx. */
async function installWheel(): Promise<Readonly<Record<string, string | undefined>>> {
  const root = await unpackDebian({
    name: "python-sdk",
    what: "Debian's httpx, which the Python SDK needs,",
    from: [
      { suite: "own", packages: packages(OWN), withDependencies: false },
      { suite: "trixie", packages: packages(ANY), withDependencies: false },
    ],
    instead: "Run this test on a Debian.",
  });
  const libraries = join(root, "usr/lib/python3/dist-packages");
  const environment = { PATH: process.env["PATH"], PYTHONDONTWRITEBYTECODE: "1" };
  const source = join(folder, "python");
  cpSync(join(ROOT, "sdk/python"), source, { recursive: true });
  const build = "from setuptools.build_meta import build_wheel; print(build_wheel('..'))";
  await run(PYTHON, ["-c", build], { cwd: source, env: { ...environment, PYTHONPATH: libraries } });
  const wheel = readdirSync(folder).find((name) => name.endsWith(".whl"));
  assert.equal(wheel, "latchkey-0.1.0-py3-none-any.whl");
  const installed = join(folder, "installed");
  const pip = ["-m", "pip", "install", "--no-index", "--no-deps", "--target", installed, join(folder, wheel)];
  await run(PYTHON, pip, { env: { ...environment, PYTHONPATH: libraries } });
  assert.ok(readdirSync(join(installed, "latchkey")).includes("py.typed"));
  return { ...environment, PYTHONPATH: `${installed}:${libraries}` };
}

let environment: Readonly<Record<string, string | undefined>>;
before(async () => {
  environment = await installWheel();
});

test("every operation of openapi.json is reached by its example, and every method is typed, with and without asyncio", async () => {
  const sources = OPERATIONS.map((operation) => [
    operation.id,
    must(
      sdkSamples(operation).find(({ lang }) => lang === "Python"),
      "an example",
    ).source,
  ]);
  const python = spawn(PYTHON, [join(ROOT, "test/sdk/python-operations.py")], { env: environment });
  let [output, errors] = ["", ""];
  python.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  python.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  python.stdin.end(JSON.stringify(Object.fromEntries(sources)));
  await new Promise((resolve) => python.once("close", resolve));
  assert.equal(errors, "");
  const { sent, untyped, other_names: otherNames } = JSON.parse(output);
  assert.deepEqual([untyped, otherNames], [[], []]);
  for (const operation of OPERATIONS) {
    const path = operation.path.replace(/\{(\w+)\}/g, (_all, name: string) =>
      String(operation.parameters.find((each) => each.name === name)?.example),
    );
    const [example = null] = Object.values(operation.body?.content["application/json"]?.examples ?? {});
    const expected = [operation.method.toUpperCase(), `${operation.isOpen ? "" : "/api/v1"}${path}`, example];
    assert.deepEqual(sent[operation.id], [expected], operation.id);
  }
});

test("it works with and without asyncio, against a service whose answers are lost", async () => {
  await using stage = await openStage();
  let posts = 0;
  await using cutter = await openCutter(stage.service.url, ({ method }) => {
    if (method === "POST") posts += 1;
    return method === "POST" && posts % 3 !== 0;
  });
  const runs = await stage.count("run");
  const python = spawn(PYTHON, [join(ROOT, "test/sdk/python-flow.py")], {
    env: {
      ...environment,
      API_KEY: stage.key,
      BASE_URL: stage.service.url,
      CUT_URL: `${cutter.url}/api/v1/`,
    },
  });
  let [output, errors] = ["", ""];
  python.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  python.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    if (/^\S+\n$/.test(output)) void submitHostedForm(output.trim(), { token: "a-token" });
  });
  await new Promise((resolve) => python.once("close", resolve));
  assert.equal(errors, "");
  const told = JSON.parse(output.slice(output.indexOf("\n")));
  assert.deepEqual(told.health, ["ok", "ready"]);
  assert.deepEqual(told.ignored, ["misspelled, key"]);
  assert.equal(told.states.at(-1), "completed");
  assert.equal(told.status, "completed");
  assert.deepEqual(told.records, [{ n: 1 }, { n: 2, text: 'a "quoted" {brace} ä' }]);
  assert.deepEqual(told.metadata, { po: "17" });
  assert.deepEqual(told.refusals, [
    ["ConflictError", 409, null],
    ["ValidationError", 400, "needed_too"],
    ["NotFoundError", 404, null],
    ["AuthenticationError", 401, null],
  ]);
  assert.equal(told.no_key, "The run has no result aout: pass one of out");
  assert.equal(told.schema, "object");
  assert.deepEqual(told.async, { status: "completed", in_order: true, embedded: "pending" });
  // One of the first part, one of the second although its answer was lost twice.
  assert.equal(await stage.count("run"), runs + 2);
});
