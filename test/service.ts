import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createTestDatabase, type TestDatabase } from "./database.ts";

const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));

/** As the launcher `latchkey` starts it: heaps that stay small while records stream through them. */
const FLAGS = [
  "--max-semi-space-size=8",
  "--initial-old-space-size=64",
  "--heap-growing-percent=30",
  "--disable-warning=ExperimentalWarning",
];

const MEMORY = { MALLOC_ARENA_MAX: "1" };

/** What a command printed and how it ended. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A whole installation: data folder, database of its own, and the service as a process that can be killed. */
export interface Installation {
  readonly database: TestDatabase;
  readonly dataFolder: string;
  readonly environment: Record<string, string>;
  /** Runs `latchkey …` to its end. */
  command(...arguments_: string[]): Promise<CommandResult>;
  /** Applies documents given as YAML texts; throws with the problems when they are refused. */
  apply(...documents: string[]): Promise<void>;
  /** A new API key's text. */
  createKey(account: string, ...options: string[]): Promise<string>;
  serve(extra?: Record<string, string>, ...arguments_: string[]): Promise<RunningService>;
  /** Everything that any process of this installation has written to its standard error so far. */
  logs(): string;
}

export interface RunningService {
  readonly url: string;
  readonly child: ChildProcess;
  /** Ends it with a signal and waits; gives its exit code (null after a kill). */
  end(signal?: "SIGTERM" | "SIGKILL" | "SIGINT"): Promise<number | null>;
}

/** Makes an installation with `latchkey init`; the disposer ends its processes and removes all of it. */
export async function install(
  environment: Record<string, string> = {},
  given: TestDatabase | null = null,
): Promise<Installation & AsyncDisposable> {
  const database = given ?? (await createTestDatabase());
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  const dataFolder = join(folder, "data");
  const all = {
    DATABASE_URL: database.connectionString,
    LATCHKEY_DATA_DIR: dataFolder,
    LATCHKEY_PORT: "0",
    LATCHKEY_EGRESS_ALLOW: "127.0.0.0/8",
    LATCHKEY_LOG_LEVEL: "debug",
    LATCHKEY_LOG_FORMAT: "json",
    ...environment,
  };
  const running = new Set<RunningService>();
  let logged = "";
  let documents = 0;
  const log = (text: string): void => {
    logged += text;
  };
  const command = async (...arguments_: string[]): Promise<CommandResult> => {
    const result = await collect(start(arguments_, all));
    log(result.stderr);
    return result;
  };
  const checked = async (...arguments_: string[]): Promise<string> => {
    const { code, stdout, stderr } = await command(...arguments_);
    if (code !== 0) throw new Error(`latchkey ${arguments_.join(" ")} ended with ${code}:\n${stderr}`);
    return stdout;
  };
  const installation: Installation & AsyncDisposable = {
    database,
    dataFolder,
    environment: all,
    command,
    apply: async (...texts) => {
      const file = join(folder, `documents-${documents++}.yaml`);
      writeFileSync(file, texts.join("\n---\n"));
      await checked("apply", "-f", file);
    },
    createKey: async (account, ...options) => {
      const line = await checked("keys", "create", "--account", account, "--json", ...options);
      return (JSON.parse(line) as { key: string }).key;
    },
    serve: async (extra = {}, ...arguments_) => {
      const service = await startServing({ ...all, ...extra }, arguments_, log);
      running.add(service);
      service.child.once("exit", () => running.delete(service));
      return service;
    },
    logs: () => logged,
    [Symbol.asyncDispose]: async () => {
      for (const service of running) await service.end("SIGKILL");
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await checked("init");
  return installation;
}

/** An example document with the portal's origin replaced by the real one. */
export function exampleDocument(path: string, portalUrl: string): string {
  const file = fileURLToPath(new URL(`../examples/${path}`, import.meta.url));
  return readFileSync(file, "utf8").replaceAll("http://127.0.0.1:4600", portalUrl);
}

function start(arguments_: readonly string[], environment: Record<string, string>): ChildProcess {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("LATCHKEY_") && name !== "DATABASE_URL",
  );
  return spawn(process.execPath, [...FLAGS, MAIN, ...arguments_], {
    env: { ...MEMORY, ...Object.fromEntries(inherited), ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function collect(child: ChildProcess): Promise<CommandResult> {
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stdout, stderr };
}

async function startServing(
  environment: Record<string, string>,
  arguments_: readonly string[],
  log: (text: string) => void,
): Promise<RunningService> {
  const child = start(["serve", ...arguments_], environment);
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  let errors = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
    log(text);
  });
  const first = await new Promise<string>((resolve, reject) => {
    let output = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (output.includes("\n")) resolve(output.split("\n", 1)[0] ?? "");
    });
    void ended.then((code) => reject(new Error(`serve ended with ${code}:\n${errors}`)));
  });
  const url = /https?:\/\/\S+/.exec(first)?.[0];
  if (url === undefined) throw new Error(`serve's first line names no URL: ${first}`);
  return {
    url,
    child,
    end: async (signal = "SIGTERM") => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return await ended;
    },
  };
}
