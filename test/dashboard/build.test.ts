// The dashboard's build: without one the page says what to do; two builds at once leave one whole one.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import type * as dashboard from "#operator/dashboard.ts";
import Fastify, { type FastifyInstance } from "fastify";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** A checkout of its own, with the same packages. */
const checkout = mkdtempSync(join(tmpdir(), "latchkey-build-"));
const builds = join(checkout, "ui/built");

/** The class of a component of Mantine. */
const CLASS = /\bm_[0-9a-f]{6,}/g;

let app: FastifyInstance;
let url: string;

before(async () => {
  for (const path of [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "scripts",
    "ui",
    "src/operator",
    "src/domain/labels",
  ])
    cpSync(join(root, path), join(checkout, path), {
      recursive: true,
      filter: (source) => source !== join(root, "ui/built"),
    });
  symlinkSync(join(root, "node_modules"), join(checkout, "node_modules"));
  // The checkout's own module: it looks for builds beside itself.
  const { registerDashboard } = (await import(
    pathToFileURL(join(checkout, "src/operator/dashboard.ts")).href
  )) as typeof dashboard;
  app = Fastify();
  registerDashboard(app, { publicUrl: () => "https://example.com/latchkey" } as never);
  url = await app.listen({ host: "127.0.0.1", port: 0 });
});

after(async () => {
  await app?.close();
  rmSync(checkout, { recursive: true, force: true });
});

/** As the set-up builds, without a look at the packages. */
async function build(): Promise<{ readonly code: number | null; readonly said: string }> {
  const script =
    'import("./scripts/setup/dashboard-build.mjs").then(({ buildDashboard }) => buildDashboard())';
  const child = spawn(process.execPath, ["-e", script], { cwd: checkout, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (said += text));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, said };
}

async function assertNotBuilt(): Promise<void> {
  for (const path of ["/dashboard", "/dashboard/runs/run_1"]) {
    const page = await fetch(`${url}${path}`);
    assert.deepEqual([page.status, page.headers.get("retry-after")], [503, "5"]);
    assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
    assert.match(page.headers.get("content-security-policy") ?? "", /default-src 'none'/);
    const text = await page.text();
    assert.match(text, /The dashboard is not built[\s\S]*npm run build:ui/);
    assert.match(text, /<link rel="icon" href="\/latchkey\/favicon\.ico">/);
  }
  const asset = await fetch(`${url}/dashboard/assets/index.js`);
  assert.deepEqual([asset.status, asset.headers.get("cache-control")], [404, "no-store"]);
}

test("without a build every page says so, and the command", async () => {
  await assertNotBuilt();
  // Half of one, as of an unpacked archive that was cut.
  cpSync(join(checkout, "ui/index.html"), join(builds, "0123456789abcdef/index.html"), { recursive: true });
  writeFileSync(join(builds, "current"), "0123456789abcdef\n");
  await assertNotBuilt();
});

test("two builds at once are one, whole, and a service that runs has it at once", async () => {
  const both = await Promise.all([build(), build()]);
  for (const { code, said } of both) assert.equal(code, 0, said);
  const said = both.map((each) => each.said).join("");
  assert.equal(said.match(/dashboard built in/g)?.length, 1, said);
  const hash = readFileSync(join(builds, "current"), "utf8").trim();
  assert.deepEqual(readdirSync(builds).toSorted(), [hash, "current"].toSorted(), "nothing is left beside");
  const page = await fetch(`${url}/dashboard`);
  const text = await page.text();
  assert.equal(page.status, 200);
  assert.ok(text.includes('<base href="/latchkey/dashboard/"'), text);
  const assets = [...text.matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, name = ""]) => name);
  assert.ok(assets.length >= 2, text);
  for (const name of assets) {
    const file = await fetch(`${url}/dashboard/${name}`, { headers: { "accept-encoding": "identity" } });
    assert.equal(file.status, 200, name);
    assert.deepEqual(Buffer.from(await file.arrayBuffer()), readFileSync(join(builds, hash, name)));
    for (const suffix of [".br", ".gz"]) assert.ok(existsSync(join(builds, hash, `${name}${suffix}`)));
  }
});

test("the built sheets have the styles of every component that a script names", () => {
  const assets = join(builds, readFileSync(join(builds, "current"), "utf8").trim(), "assets");
  const classesOf = (ending: string): ReadonlySet<string> =>
    new Set(
      readdirSync(assets)
        .filter((name) => name.endsWith(ending))
        .flatMap((name) => readFileSync(join(assets, name), "utf8").match(CLASS) ?? []),
    );
  const known = new Set(
    readFileSync(join(root, "node_modules/@mantine/core/styles.css"), "utf8").match(CLASS),
  );
  const styled = classesOf(".css");
  const missing = [...classesOf(".js")].filter((name) => known.has(name) && !styled.has(name));
  assert.deepEqual(missing, [], "ui/styles.ts: see which file of @mantine/core/styles has the class");
  assert.ok(styled.size > 100);
});
