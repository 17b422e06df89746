// docs/operate.md: the unit is one that systemd takes, every command of the page exists, and what it says of backups works as it stands
// there but for the paths: with the embedded PostgreSQL, and with one of Debian's.
import assert from "node:assert/strict";
import { execFile, execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { connect, openCaller } from "../caller.ts";
import { ledger, LEDGER_LOGIN, ledgerDocuments, startTarget } from "../flow/target.ts";
import { freePort } from "../free-port.ts";
import { runCommand } from "../service-process.ts";
import { testInAll } from "../tiers.ts";
import { ROOT } from "./program.ts";

const execute = promisify(execFile);
const PAGE = readFileSync(join(ROOT, "docs/operate.md"), "utf8");
const blocksOf = (text: string, language: string): readonly string[] =>
  [...text.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "gs"))].map(([, block = ""]) => block);
/** The shell blocks below a heading. */
const below = (heading: string): readonly string[] =>
  blocksOf(PAGE.split(`### ${heading}\n`)[1]?.split(/^##/m)[0] ?? "", "sh");

const has = (program: string): boolean => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;

test("systemd finds nothing wrong with the unit", { skip: !has("systemd-analyze") }, () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-unit-"));
  const [unit = ""] = blocksOf(PAGE, "ini");
  const file = join(folder, "latchkey.service");
  writeFileSync(file, unit.replaceAll("/opt/latchkey", ROOT.replace(/\/$/, "")));
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", file], { encoding: "utf8" });
  rmSync(folder, { recursive: true });
  assert.deepEqual([status, stderr], [0, ""]);
});

test("every command of the page is one, with its options", async () => {
  const commands = [
    ...PAGE.matchAll(/\blatchkey ((?:[a-z][a-z-]* )*[a-z][a-z-]*)((?: --[a-z-]+)*)(?=[`\s])/g),
  ];
  const asked = new Map<string, Set<string>>();
  for (const [, words = "", options = ""] of commands) {
    // `sudo -u latchkey env …`
    if (words === "env") continue;
    const known = asked.get(words) ?? new Set();
    for (const option of options.split(" ").filter((each) => each !== "")) known.add(option);
    asked.set(words, known);
  }
  assert.ok(asked.size >= 6, [...asked.keys()].join());
  for (const [words, options] of asked) {
    const { code, stdout, stderr } = await runCommand([...words.split(" "), "--help"], {});
    assert.equal(code, 0, `latchkey ${words}: ${stderr}`);
    for (const option of options) assert.ok(stdout.includes(option), `latchkey ${words} ${option}`);
  }
});

/** A shell in which the page's blocks run: `latchkey` is this program, `systemctl` starts and stops it. */
const SHELL = `set -eu
latchkey() { ${ROOT}/latchkey "$@"; }
systemctl() {
  case $1 in
    start)
      setsid ${ROOT}/latchkey serve > "$T/serve.log" 2>&1 < /dev/null &
      echo $! > "$T/pid"
      for try in $(seq 600); do curl -sf "http://127.0.0.1:$LATCHKEY_PORT/readyz" > /dev/null && return 0; sleep 0.1; done
      cat "$T/serve.log" >&2; return 1 ;;
    stop)
      kill -TERM "$(cat "$T/pid")"
      while kill -0 "$(cat "$T/pid")" 2> /dev/null; do sleep 0.1; done ;;
  esac
}
`;

interface Stage extends AsyncDisposable {
  readonly folder: string;
  /** Of all that runs in the shell. */
  readonly environment: Record<string, string>;
  /** Runs a block of the page, and gives what it prints. */
  readonly run: (block: string) => Promise<string>;
}

async function openStage(): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-operate-"));
  for (const name of ["lib", "backup"]) mkdirSync(join(folder, name));
  const port = await freePort();
  const environment: Record<string, string> = {
    PATH: process.env["PATH"] ?? "",
    T: folder,
    LATCHKEY_DATA_DIR: join(folder, "lib/latchkey"),
    LATCHKEY_PORT: String(port),
    LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8",
    LATCHKEY_DRAIN_SECONDS: "1",
  };
  const run = async (block: string): Promise<string> => {
    const script = block
      .replaceAll("/var/lib", join(folder, "lib"))
      .replaceAll("/backup/", `${folder}/backup/`);
    // Not at once: the test's own connections hear of a restart meanwhile.
    const { stdout } = await execute("bash", ["-c", SHELL + script], { env: environment });
    return stdout;
  };
  return {
    folder,
    environment,
    run,
    [Symbol.asyncDispose]: async () => {
      if (existsSync(join(folder, "pid")))
        spawnSync("bash", ["-c", `${SHELL}systemctl stop || true`], { env: environment });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Backs up by one block, deletes a credential, restores by the other: it is gone again, and everything else works. */
async function backUpAndRestore(
  stage: Stage,
  backUp: string,
  beforeRestore: () => void,
  restore: string,
): Promise<void> {
  const { environment, folder, run } = stage;
  await using target = Object.assign(await startTarget(ledger), {
    [Symbol.asyncDispose]: async () => await target.close(),
  });
  const documents = join(folder, "documents.yaml");
  writeFileSync(documents, ledgerDocuments(target.url).join("\n---\n"));
  const key = await run(
    `latchkey init > /dev/null; latchkey apply -f ${documents} > /dev/null; latchkey keys create --account acme --json; systemctl start`,
  );
  const caller = openCaller(`http://127.0.0.1:${environment["LATCHKEY_PORT"]}`, JSON.parse(key).key);
  const [deleted, kept] = [
    await connect(caller, "strat_ledger", LEDGER_LOGIN),
    await connect(caller, "strat_ledger", LEDGER_LOGIN),
  ];
  const ledgerRun = async () =>
    (
      await caller.waitForRun(
        (await caller.post("/blueprints/ledger/trigger", { credential_id: kept })).body.id,
        60_000,
      )
    ).body;
  const first = await ledgerRun();
  assert.equal(first.status, "completed");
  await run(backUp);
  assert.equal((await caller.delete(`/credentials/${deleted}`)).status, 204);
  beforeRestore();
  const said = await run(restore);
  assert.match(said, /^1 deleted credentials in the files; 1 had been restored and are deleted again\.$/m);
  assert.doesNotMatch(said, /^wrong/m);
  assert.equal((await caller.get(`/blueprint-runs/${first.id}/results?deliveryMethod=direct`)).status, 200);
  assert.equal((await ledgerRun()).status, "completed");
  const gone = await caller.post("/blueprints/ledger/trigger", { credential_id: deleted });
  assert.equal(gone.status, 422, gone.text);
}

const FAST = "that the page's commands exist; audit/restore for what a restore must not bring back";

testInAll(
  FAST,
  "backup and restore with the embedded PostgreSQL, by the page",
  { timeout: 300_000 },
  async () => {
    await using stage = await openStage();
    const [backUp = "", restore = ""] = below("With the embedded PostgreSQL");
    await backUpAndRestore(stage, backUp, () => {}, restore);
  },
);

const BINARIES = existsSync("/usr/lib/postgresql")
  ? readdirSync("/usr/lib/postgresql").map((version) => `/usr/lib/postgresql/${version}/bin`)
  : [];
const [bin] = BINARIES.filter((folder) =>
  ["initdb", "pg_ctl", "pg_dump", "psql"].every((name) => existsSync(join(folder, name))),
);

testInAll(
  FAST,
  "backup and restore with a PostgreSQL of one's own, by this page and docs/database.md",
  { timeout: 300_000, skip: bin === undefined || process.getuid?.() !== 0 },
  async () => {
    await using stage = await openStage();
    const { folder, environment } = stage;
    const port = await freePort();
    const cluster = join(folder, "cluster");
    mkdirSync(cluster);
    chmodSync(folder, 0o755);
    execFileSync("chown", ["postgres", cluster]);
    const asPostgres = (...command: readonly string[]): void =>
      void execFileSync("setpriv", ["--reuid=postgres", "--regid=postgres", "--clear-groups", ...command], {
        stdio: "ignore",
        cwd: "/",
      });
    asPostgres(`${bin}/initdb`, "--auth=trust", "--no-sync", "-D", cluster);
    asPostgres(
      `${bin}/pg_ctl`,
      "-D",
      cluster,
      "-w",
      "-o",
      `-c port=${port} -c listen_addresses=127.0.0.1 -k ${cluster}`,
      "-l",
      join(cluster, "log"),
      "start",
    );
    await using _server = {
      [Symbol.asyncDispose]: async () =>
        asPostgres(`${bin}/pg_ctl`, "-D", cluster, "-m", "immediate", "stop"),
    };
    environment["PATH"] = `${bin}:${environment["PATH"]}`;
    const [sql = ""] = blocksOf(readFileSync(join(ROOT, "docs/database.md"), "utf8"), "sql");
    const psql = (text: string): void =>
      void execFileSync(
        `${bin}/psql`,
        ["-v", "ON_ERROR_STOP=1", "-q", "-h", "127.0.0.1", "-p", String(port), "-U", "postgres"],
        { input: text },
      );
    const name = (database: string): void => {
      environment["DATABASE_URL"] = `postgres://latchkey_app:x@127.0.0.1:${port}/${database}`;
      environment["DATABASE_OWNER_URL"] = `postgres://latchkey_owner:x@127.0.0.1:${port}/${database}`;
    };
    psql(sql);
    name("latchkey");
    const [backUp = "", restore = ""] = below("With a PostgreSQL of your own");
    const again = (): void => {
      psql(
        sql.replaceAll(/^create role.*\n/gm, "").replaceAll("database latchkey ", "database latchkey_again "),
      );
      name("latchkey_again");
    };
    await backUpAndRestore(stage, backUp, again, restore);
  },
);

test("every alarm of the log is on the page", () => {
  const source = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => readFileSync(join(ROOT, "src", file), "utf8"))
    .join("\n");
  const alarms = [...source.matchAll(/\balarm: "(\w+)"/g)].map(([, alarm = ""]) => alarm);
  assert.ok(alarms.length >= 8);
  for (const alarm of alarms) assert.ok(PAGE.includes(`\`${alarm}\``), alarm);
});
