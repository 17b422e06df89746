/** What `npm run package` makes, as it is installed: docs/deploy.md#the-npm-package. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import type { LockFile, Manifest } from "../../scripts/package/manifest.ts";
import { foreignEnvironment } from "../service-process.ts";
import { testInAll } from "../tiers.ts";

const PROJECT = resolve(import.meta.dirname, "../..");
const execute = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "latchkey-package-"));
const packed = join(folder, "latchkey");

before(async () => {
  const program = join(PROJECT, "scripts/package.ts");
  await execute(process.execPath, ["--disable-warning=ExperimentalWarning", program, "--to", folder]);
});
after(() => rmSync(folder, { recursive: true, force: true }));

const read = <T>(file: string): T => JSON.parse(readFileSync(join(packed, file), "utf8")) as T;

test("the package has nothing for development, and its lock file only what it depends on", () => {
  const manifest = read<Manifest>("package.json");
  assert.equal(manifest["devDependencies"], undefined);
  assert.equal(manifest["scripts"], undefined);
  assert.equal(manifest.exports["./node"], "./src/nodes/author.js");
  const { packages } = read<LockFile>("npm-shrinkwrap.json");
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }))
    assert.ok(packages[`node_modules/${name}`], name);
  for (const name of ["typescript", "vite", "react", "oxlint"])
    assert.equal(packages[`node_modules/${name}`], undefined, name);
  assert.deepEqual(
    Object.entries(packages).filter(([, entry]) => entry.dev === true),
    [],
  );
});

test("below `node_modules`, where Node strips no types, it runs: commands, node types and threads", async () => {
  const modules = join(folder, "project", "node_modules");
  mkdirSync(modules, { recursive: true });
  for (const name of readdirSync(join(PROJECT, "node_modules")).filter((each) => !each.startsWith(".")))
    symlinkSync(join(PROJECT, "node_modules", name), join(modules, name));
  await execute("cp", ["-r", packed, join(modules, "latchkey")]);
  mkdirSync(join(modules, ".bin"));
  symlinkSync("../latchkey/latchkey", join(modules, ".bin", "latchkey"));
  symlinkSync(process.execPath, join(modules, ".bin", "node"));
  const run = async (...arguments_: readonly string[]): Promise<string> =>
    (await execute(join(modules, ".bin", "latchkey"), arguments_, { cwd: folder, env: foreignEnvironment() }))
      .stdout;
  assert.equal(await run("--version"), "0.1.0\n");
  // In a thread, with all types of nodes and logins.
  const documents = join(modules, "latchkey", "examples");
  assert.match(await run("validate", "-f", documents), /valid/);
});

testInAll(
  "the sources without types, below links to this repository's packages",
  "npm installs the file, and `npx latchkey demo --once` plays the demo with the package's own Node and PostgreSQL",
  { timeout: 600_000 },
  async () => {
    const project = join(folder, "empty");
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), "{}");
    const file = join(folder, "latchkey-0.1.0.tgz");
    const install = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", file];
    await execute("npm", install, { cwd: project });
    const modules = readdirSync(join(project, "node_modules"));
    assert.ok(!modules.includes("typescript"), modules.join());
    const { stdout } = await execute("npx", ["latchkey", "demo", "--once"], {
      cwd: project,
      env: { ...foreignEnvironment(), TMPDIR: folder },
    });
    assert.match(stdout, /Of 240 records, 3 invalid:/);
  },
);

/** Starts the service and asks it for the dashboard, where the only network is the loopback. */
const WITHOUT_NETWORK = `set -eu
ip link set lo up
latchkey init
latchkey serve &
for try in $(seq 600); do curl -sf "http://127.0.0.1:$LATCHKEY_PORT/readyz" && break; sleep 0.1; done
curl -s -o /dev/null -w 'dashboard %{http_code}\\n' "http://127.0.0.1:$LATCHKEY_PORT/dashboard"
kill -TERM $!
wait $!
`;

testInAll(
  "the package, which the bundle contains, below links to this repository's packages",
  "the bundle runs on a machine without a network, and lists what is in it",
  { timeout: 600_000, skip: process.getuid?.() === 0 ? false : "only root makes a network namespace" },
  async () => {
    const program = join(PROJECT, "scripts/package.ts");
    const given = ["--disable-warning=ExperimentalWarning", program, "--bundle", "--to", folder];
    await execute(process.execPath, given);
    await execute("sha256sum", ["--check", "--strict", "SHA256SUMS"], { cwd: folder });
    const name = `latchkey-0.1.0-${process.platform}-${process.arch}`;
    await execute("tar", ["-xzf", `${name}.tar.gz`], { cwd: folder });
    const { components } = JSON.parse(readFileSync(join(folder, name, "sbom.cdx.json"), "utf8")) as {
      readonly components: readonly { readonly name: string }[];
    };
    const listed = components.map((each) => each.name);
    assert.ok(listed.includes("fastify") && !listed.includes("typescript"), listed.join());
    const { stdout } = await execute("unshare", ["--net", "sh", "-c", WITHOUT_NETWORK], {
      cwd: folder,
      env: {
        PATH: `${join(folder, name)}:/usr/sbin:/usr/bin:/sbin:/bin`,
        LATCHKEY_DATA_DIR: join(folder, "data"),
        LATCHKEY_PORT: "8080",
      },
    });
    assert.match(stdout, /dashboard 200/);
  },
);
