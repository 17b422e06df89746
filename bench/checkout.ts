/** An installation of another checkout, older or newer: made and served by its own command line, whatever its sources look like. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openPool } from "#db/connection/pool.ts";
import { runLatchkey, startProcess, type ServiceProgram } from "../test/service-process.ts";
import type { BenchServer } from "./server.ts";
import type { Ground } from "./stage.ts";

/**
 * Makes an installation on an empty database of this server with the program in `folder`, by its `init`. Its packages must be
 * installed; its set-up is not run.
 */
export async function installCheckout(
  folder: string,
  server: BenchServer,
  settings: Readonly<Record<string, string>>,
): Promise<Ground & AsyncDisposable> {
  await using opened = new AsyncDisposableStack();
  const program = readLauncher(resolve(folder));
  const own = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
  opened.defer(() => rmSync(own, { recursive: true, force: true }));
  const name = "latchkey_bench";
  await server.db.query(`create database ${name}`);
  const url = new URL(server.connectionString);
  url.pathname = `/${name}`;
  const db = openPool({ connectionString: url.href }, { applicationName: "bench", max: 2 });
  opened.defer(async () => await db.end());
  const dataFolder = join(own, "data");
  const environment = {
    DATABASE_URL: url.href,
    LATCHKEY_DATA_DIR: dataFolder,
    LATCHKEY_PORT: "0",
    LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8",
    LATCHKEY_LOG_FORMAT: "json",
    ...settings,
  };
  const command: Ground["command"] = async (...words) => await runLatchkey(words, environment, { program });
  const run = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await command(...words);
    if (code !== 0) throw new Error(`${folder}: latchkey ${words.join(" ")} ended with ${code}:\n${stderr}`);
    return stdout;
  };
  await run("init");
  const kept = opened.move();
  return {
    database: { connectionString: url.href, db, drop: async () => {} },
    dataFolder,
    environment,
    command,
    apply: async (...documents) => {
      const file = join(own, "documents.yaml");
      writeFileSync(file, documents.join("\n---\n"));
      await run("apply", "-f", file);
    },
    createKey: async (account) => {
      const line = await run("keys", "create", "--account", account, "--json");
      return (JSON.parse(line) as { key: string }).key;
    },
    serveProcess: async (more = {}, roles = ["api", "worker"]) =>
      kept.use(endable(await startProcess({ ...environment, ...more }, roles, say, { program }))),
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

const say = (text: string): void => void process.stderr.write(text);

/** A service that was ended before stays ended. */
function endable<Service extends { end(signal?: "SIGKILL"): Promise<unknown> }>(
  service: Service,
): Service & AsyncDisposable {
  return { ...service, [Symbol.asyncDispose]: async () => void (await service.end("SIGKILL")) };
}

/** What the launcher starts, without its set-up, which would install packages where the lock file differs. */
function readLauncher(folder: string): ServiceProgram {
  const launcher = readFileSync(join(folder, "latchkey"), "utf8");
  const found = /^exec "\$node" (.*) "\$root\/(\S+)" "\$@"$/m.exec(launcher);
  if (!found?.[1] || !found[2]) throw new Error(`${folder}/latchkey does not say what it starts`);
  return {
    node: join(folder, "node_modules", ".bin", "node"),
    flags: found[1].split(" "),
    main: join(folder, found[2]),
  };
}
