import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { chmod, chown, cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { cpuSecondsOf } from "../bench/cpu.ts";

// The real set-up and launcher with the real npm, on a small project whose packages are local archives: one
// takes the place of npm's Node (it starts the Node that runs this test), one is a tool for development.

const root = dirname(import.meta.dirname);
const NOBODY = 65534;

let scratch: string;
let template: string;

/** The machine's PATH, without this project's own tools. */
const path = (process.env["PATH"] ?? "")
  .split(delimiter)
  .filter((folder) => !folder.includes("node_modules"))
  .join(delimiter);

async function pack(folder: string, manifest: object, program: string): Promise<void> {
  await mkdir(join(folder, "package", "bin"), { recursive: true });
  await writeFile(join(folder, "package/package.json"), JSON.stringify(manifest));
  await writeFile(join(folder, "package/bin/program"), program, { mode: 0o755 });
  execFileSync("tar", ["-czf", `${folder}.tgz`, "-C", folder, "package"]);
  await rm(folder, { recursive: true });
}

before(async () => {
  scratch = await mkdtemp(join(tmpdir(), "latchkey-setup-"));
  await chmod(scratch, 0o755);
  template = join(scratch, "template");
  await mkdir(join(template, "src"), { recursive: true });
  await mkdir(join(template, "vendor"));
  for (const part of ["scripts/setup.mjs", "scripts/setup", "latchkey"]) {
    await cp(join(root, part), join(template, part), { recursive: true });
  }
  const node = { name: "packed-node", version: "24.0.0", bin: { node: "bin/program" } };
  await pack(join(template, "vendor/node"), node, `#!/bin/sh\nexec "${process.execPath}" "$@"\n`);
  const tool = { name: "packed-tool", version: "1.0.0", bin: "bin/program", engines: { node: ">=99" } };
  await pack(join(template, "vendor/tool"), tool, "#!/bin/sh\n");
  await writeFile(
    join(template, "package.json"),
    JSON.stringify({
      name: "small",
      version: "1.0.0",
      dependencies: { "packed-node": "file:vendor/node.tgz" },
      devDependencies: { "packed-tool": "file:vendor/tool.tgz" },
    }),
  );
  await writeFile(
    join(template, "src/main.mjs"),
    `const words = process.argv.slice(2);
console.log(JSON.stringify({ words, cwd: process.cwd() }));
process.exitCode = 7;
`,
  );
  const options = [
    "install",
    "--package-lock-only",
    "--offline",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
  ];
  execFileSync("npm", options, { cwd: template, env: { ...process.env, PATH: path }, stdio: "pipe" });
});

after(() => rm(scratch, { recursive: true, force: true }));

async function newProject(name: string): Promise<string> {
  const folder = join(scratch, name);
  await cp(template, folder, { recursive: true });
  return folder;
}

type Result = { code: number | null; stdout: string; stderr: string };
type Options = {
  env?: Record<string, string>;
  node?: string[];
  uid?: number;
  program?: string;
  cwd?: string;
};

async function run(program: string, parameters: readonly string[], options: Options = {}): Promise<Result> {
  const child = spawn(program, parameters, {
    cwd: options.cwd ?? scratch,
    env: { PATH: path, HOME: process.env["HOME"], ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  });
  const result: Result = { code: null, stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (result.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (result.stderr += text));
  result.code = await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  return result;
}

async function setUp(
  folder: string,
  parameters: readonly string[] = [],
  options: Options = {},
): Promise<Result> {
  const script = join(folder, "scripts/setup.mjs");
  return run(options.program ?? process.execPath, [...(options.node ?? []), script, ...parameters], options);
}

function isMarked(folder: string): boolean {
  const marker = join(folder, "node_modules/.latchkey-lock");
  return (
    existsSync(marker) &&
    readFileSync(marker, "utf8") === readFileSync(join(folder, "package-lock.json"), "utf8")
  );
}

/** A folder with a `node` and nothing else, so that npm is not found. */
async function pathWithoutNpm(): Promise<string> {
  const folder = join(scratch, "only-node");
  await mkdir(folder, { recursive: true });
  if (!existsSync(join(folder, "node"))) await symlink(process.execPath, join(folder, "node"));
  return folder;
}

test("a first set-up installs everything, says so on stderr, and the next has nothing to do", async () => {
  const folder = await newProject("first");
  const first = await setUp(folder);
  assert.equal(first.code, 0, first.stderr);
  assert.equal(first.stdout, "");
  assert.match(
    first.stderr,
    /^latchkey: installing the dependencies .*\nlatchkey: dependencies installed in \d+ s\n$/,
  );
  assert.ok(isMarked(folder));
  assert.ok(existsSync(join(folder, "node_modules/.bin/node")));
  assert.deepEqual(await readdir(join(folder, ".cache")), [], "no lock is left");

  const env = { PATH: await pathWithoutNpm() };
  const rounds = 8;
  const before = cpuSecondsOf([process.pid]);
  for (let round = 0; round < rounds; round += 1) {
    const again = await setUp(folder, ["--tests"], { env: { ...env, LATCHKEY_CHROMIUM: "/bin/sh" } });
    assert.deepEqual(again, { code: 0, stdout: "", stderr: "" });
  }
  // Of this process and the ended ones; NaN where no /proc says it. Node's own start is nearly all of it.
  const seconds = (cpuSecondsOf([process.pid]) - before) / rounds;
  assert.ok(!(seconds > 0.2), `${seconds.toFixed(2)} s of CPU time a round`);
});

test("a changed lock file installs again; what npm itself has installed from it is believed", async () => {
  const folder = await newProject("stale");
  await setUp(folder);
  const lockfile = join(folder, "package-lock.json");
  const text = readFileSync(lockfile, "utf8");

  await writeFile(lockfile, text.replace(`"version": "24.0.0",`, `"version": "24.0.0", "license": "MIT",`));
  const sameVersions = await setUp(folder, [], { env: { PATH: await pathWithoutNpm() } });
  assert.deepEqual(sameVersions, { code: 0, stdout: "", stderr: "" });
  assert.ok(isMarked(folder));

  await rm(join(folder, "node_modules/packed-tool"), { recursive: true });
  await writeFile(lockfile, text);
  const renewed = await setUp(folder);
  assert.match(renewed.stderr, /latchkey: renewing the dependencies/);
  assert.ok(isMarked(folder) && existsSync(join(folder, "node_modules/packed-tool/package.json")));
});

test("several set-ups at once: one installs, the others wait, all end well", async () => {
  const folder = await newProject("at-once");
  const results = await Promise.all(Array.from({ length: 4 }, () => setUp(folder)));
  assert.deepEqual(
    results.map(({ code }) => code),
    [0, 0, 0, 0],
  );
  assert.equal(
    results.filter(({ stderr }) => stderr.includes("installing the dependencies with npm")).length,
    1,
  );
  assert.ok(isMarked(folder));
});

test("a lock whose processes have ended is taken over, one whose process lives is respected", async () => {
  const folder = await newProject("locked");
  const lock = join(folder, ".cache/setup.lock");
  const ended = spawnSync(process.execPath, ["--version"]).pid;
  await mkdir(lock, { recursive: true });
  await writeFile(join(lock, "owner.json"), JSON.stringify({ host: hostname(), pids: [ended] }));
  assert.equal((await setUp(folder)).code, 0);

  await rm(join(folder, "node_modules"), { recursive: true });
  await mkdir(lock, { recursive: true });
  await writeFile(join(lock, "owner.json"), JSON.stringify({ host: hostname(), pids: [ended, process.pid] }));
  const waiting = setUp(folder);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.ok(!existsSync(join(folder, "node_modules")), "it waits");
  await rm(lock, { recursive: true });
  const result = await waiting;
  assert.equal(result.code, 0);
  assert.match(result.stderr, /another set-up is at work, waiting for it/);
});

test("npm's settings of the user and of a pipeline leave nothing out, and its engine warnings are not shown", async () => {
  const folder = await newProject("settings");
  const home = join(scratch, "home");
  await mkdir(home);
  await writeFile(join(home, ".npmrc"), "ignore-scripts=true\nomit=dev\nengine-strict=true\nfund=true\n");
  const env = { HOME: home, CI: "true", NODE_ENV: "production", npm_config_omit: "dev optional" };
  const { code, stderr } = await setUp(folder, [], { env });
  assert.equal(code, 0, stderr);
  assert.ok(existsSync(join(folder, "node_modules/packed-tool")));
  assert.doesNotMatch(stderr, /EBADENGINE|npm warn/);
});

test("what is missing is named together with the remedy, and nothing counts as installed", async () => {
  const folder = await newProject("refusals");
  const refusal = async (options: Options, parameters: string[] = []): Promise<string> => {
    const { code, stderr } = await setUp(folder, parameters, options);
    assert.equal(code, 1, stderr);
    assert.doesNotMatch(stderr, /\n {4}at /, "no stack");
    assert.ok(!isMarked(folder));
    return stderr;
  };
  const asNode = (version: string): string[] => {
    const code = `Object.defineProperty(process.versions, "node", { value: "${version}" })`;
    return ["--import", `data:text/javascript,${encodeURIComponent(code)}`];
  };

  assert.match(await refusal({ env: { PATH: await pathWithoutNpm() } }), /npm was not found.*nodejs\.org/);
  assert.match(await refusal({ node: asNode("18.20.0") }), /Node 18\.20\.0 is too old.*needs Node 20/);

  const lockfile = join(folder, "package-lock.json");
  const text = readFileSync(lockfile, "utf8");
  const manifest = readFileSync(join(folder, "package.json"), "utf8");
  await writeFile(
    join(folder, "package.json"),
    manifest.replace("{", `{"optionalDependencies":{"more":"file:vendor/node.tgz"},`),
  );
  assert.match(await refusal({}), /package\.json and package-lock\.json do not fit together.*npm install/);

  await writeFile(join(folder, "package.json"), manifest.replace("file:vendor/tool.tgz", "1.0.0"));
  const fromRegistry = text
    .replace(`"packed-tool": "file:vendor/tool.tgz"`, `"packed-tool": "1.0.0"`)
    .replace(`"resolved": "file:vendor/tool.tgz"`, `"resolved": "http://127.0.0.1:9/tool.tgz"`);
  await writeFile(lockfile, fromRegistry);
  const offline = {
    npm_config_registry: "http://127.0.0.1:9/",
    npm_config_fetch_retries: "0",
    npm_config_cache: join(scratch, "empty-cache"),
  };
  assert.match(await refusal({ env: offline }), /ECONNREFUSED[^]*The npm registry cannot be reached/);

  await rm(lockfile);
  assert.match(await refusal({}), /package-lock\.json is missing. Restore it/);
});

test("where npm has no Node package, the machine's own Node has to be 24", async () => {
  const folder = await newProject("other-platform");
  await setUp(folder);
  await rm(join(folder, "node_modules/.bin/node"));
  assert.equal((await setUp(folder)).code, 0);
  const code = `Object.defineProperty(process.versions, "node", { value: "22.1.0" })`;
  const old = await setUp(folder, [], {
    node: ["--import", `data:text/javascript,${encodeURIComponent(code)}`],
  });
  assert.equal(old.code, 1);
  assert.match(old.stderr, /runs on Node 24 or later.*this machine's Node is 22\.1\.0: install Node 24/);
});

test("--tests refuses a LATCHKEY_CHROMIUM that cannot be executed", async () => {
  const folder = await newProject("chromium");
  const { code, stderr } = await setUp(folder, ["--tests"], {
    env: { LATCHKEY_CHROMIUM: "/nowhere/chromium" },
  });
  assert.equal(code, 1);
  assert.match(stderr, /LATCHKEY_CHROMIUM is \/nowhere\/chromium, which cannot be executed/);
});

/** A user without rights and a Node that it may run: root becomes `nobody`, everybody else is itself. */
function unprivileged(): { uid?: number; program: string } | undefined {
  if (process.getuid?.() !== 0) return { program: process.execPath };
  const found = [process.execPath, ...path.split(delimiter).map((folder) => join(folder, "node"))].find(
    (program) => {
      return (
        existsSync(program) && spawnSync(program, ["-v"], { uid: NOBODY, gid: NOBODY, cwd: "/" }).status === 0
      );
    },
  );
  return found === undefined ? undefined : { uid: NOBODY, program: found };
}

test("a folder that cannot be written is named; its owner can set it up without a home folder", async (context) => {
  const user = unprivileged();
  if (user === undefined) return context.skip("no Node here that an unprivileged user may run");
  const folder = await newProject("unprivileged");
  await chmod(folder, 0o555);
  const refused = await setUp(folder, [], user);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /have to be installed, but \S+unprivileged cannot be written \(EACCES\)/);

  await chmod(folder, 0o755);
  if (user.uid !== undefined) await chown(folder, user.uid, user.uid);
  const set = await setUp(folder, [], { ...user, env: { HOME: "/nonexistent" } });
  assert.equal(set.code, 0, set.stderr);
  assert.ok(isMarked(folder));

  await chmod(folder, 0o555);
  await chmod(join(folder, "node_modules"), 0o555);
  assert.deepEqual(await setUp(folder, [], user), { code: 0, stdout: "", stderr: "" });
  await chmod(join(folder, "node_modules"), 0o755);
  await chmod(folder, 0o755);
});

test("./latchkey sets up by itself, works through symbolic links from any folder, and passes everything on", async () => {
  const folder = await newProject("launcher with spaces");
  await symlink("launcher with spaces/latchkey", join(scratch, "first-link"));
  await mkdir(join(scratch, "bin"));
  await symlink("../first-link", join(scratch, "bin/latchkey"));
  const elsewhere = join(scratch, "elsewhere");
  await mkdir(elsewhere);
  for (const isFirst of [true, false]) {
    const result = await run(join(scratch, "bin/latchkey"), ["a b", "", "--c=$d"], { cwd: elsewhere });
    assert.deepEqual(JSON.parse(result.stdout), { words: ["a b", "", "--c=$d"], cwd: elsewhere });
    assert.equal(result.code, 7, "the program's own exit code");
    assert.equal(result.stderr.includes("installing the dependencies"), isFirst, result.stderr);
  }
  await rm(join(folder, "node_modules"), { recursive: true });
  const tools = join(scratch, "tools");
  await mkdir(tools);
  for (const tool of ["dirname", "readlink", "cmp"]) {
    await symlink(
      execFileSync("sh", ["-c", `command -v ${tool}`], { encoding: "utf8" }).trim(),
      join(tools, tool),
    );
  }
  const nowhere = await run("/bin/sh", [join(folder, "latchkey"), "serve"], { env: { PATH: tools } });
  assert.equal(nowhere.code, 1);
  assert.match(nowhere.stderr, /^latchkey: Node was not found\. Install Node 20 or later/);
});

test("npm ci accepts the committed lock file: every optional package has its entry", () => {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, { optionalDependencies?: Record<string, string> }>;
  };
  const isLocked = (from: string, name: string): boolean => {
    const own = from === "" ? `node_modules/${name}` : `${from}/node_modules/${name}`;
    if (packages[own] !== undefined) return true;
    return from !== "" && isLocked(from.slice(0, Math.max(0, from.lastIndexOf("/node_modules/"))), name);
  };
  const missing = Object.entries(packages).flatMap(([from, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter((name) => !isLocked(from, name)),
  );
  assert.deepEqual(missing, [], "npm ci refuses a lock file without them (EUSAGE), so nobody could install");
});
