import { fork, spawn, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";

const COMMAND_SERVER = fileURLToPath(new URL("./command-server.ts", import.meta.url));
const MAIN = fileURLToPath(new URL("../src/main.mjs", import.meta.url));

/** The program that a process runs: this checkout's, unless a bench compares it with another. */
export interface ServiceProgram {
  readonly node: string;
  readonly flags: readonly string[];
  readonly main: string;
}

/** As the launcher `latchkey` starts it: heaps that stay small while records stream through them. */
export const FLAGS = [
  "--max-semi-space-size=16",
  "--initial-old-space-size=64",
  "--heap-growing-percent=30",
  "--disable-warning=ExperimentalWarning",
];

const OWN: ServiceProgram = { node: process.execPath, flags: FLAGS, main: MAIN };

const MEMORY = { MALLOC_ARENA_MAX: "1" };

/** What a command printed and how it ended. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `latchkey serve` as a process of its own. */
export interface ServiceProcess {
  readonly url: string;
  readonly child: ChildProcess;
  /** Ends it with a signal (default SIGTERM) and waits; gives its exit code, null after a kill. */
  end(signal?: "SIGTERM" | "SIGKILL" | "SIGINT"): Promise<number | null>;
}

type Environment = Readonly<Record<string, string>>;

/** The test's own environment without the variables that are settings of the product. */
export function foreignEnvironment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && !entry[0].startsWith("LATCHKEY_") && entry[0] !== "DATABASE_URL",
    ),
  );
}

/** Runs `latchkey …` to its end, in a process of its own. */
export async function runLatchkey(
  arguments_: readonly string[],
  environment: Environment,
  {
    program = OWN,
    folder = process.cwd(),
  }: { readonly program?: ServiceProgram; readonly folder?: string } = {},
): Promise<CommandResult> {
  const child = start(arguments_, environment, program, folder);
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stdout, stderr: withoutProgress(stderr) };
}

/** Without the lines that a command writes when it has to wait for something: whether it has to is the machine's. */
export const withoutProgress = (stderr: string): string => stderr.replaceAll(/^[^\n]* …\n/gm, "");

export interface CommandRequest {
  readonly arguments: readonly string[];
  /** The whole environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** The working directory. */
  readonly folder: string;
}

/** Serves the commands of this test process, one at a time; it goes with the process. */
let commandServer: ChildProcess | null = null;
let isCommandServerBusy = false;

/** What a process alone can be given, because the registry of node types or Node itself has one for the process. */
const PROCESS_SETTINGS = ["LATCHKEY_NODE_FILES", "NODE_EXTRA_CA_CERTS"];

/** Whether these settings can't be given to a process that has others already: AWS's SDK reads the process's environment. */
export const needsOwnProcess = (environment: Environment): boolean =>
  [...PROCESS_SETTINGS, "LATCHKEY_MASTER_KEY_KMS"].some((name) => Boolean(environment[name]));

/**
 * Runs `latchkey …` to its end in a process that is kept for the next command. One that runs beside another, one that fail-points may
 * end, and one with settings of a process has a process of its own.
 */
export async function runCommand(
  arguments_: readonly string[],
  environment: Environment,
  folder = process.cwd(),
): Promise<CommandResult> {
  const isOfProcess = ["LATCHKEY_FAILPOINTS", ...PROCESS_SETTINGS].some((name) => Boolean(environment[name]));
  if (isCommandServerBusy || isOfProcess) return await runLatchkey(arguments_, environment, { folder });
  isCommandServerBusy = true;
  try {
    const server = (commandServer ??= startCommandServer());
    const request: CommandRequest = {
      arguments: arguments_,
      environment: { ...foreignEnvironment(), ...environment },
      folder,
    };
    server.ref();
    server.send(request);
    return await answerOf(server);
  } finally {
    commandServer?.unref();
    isCommandServerBusy = false;
  }
}

async function answerOf(server: ChildProcess): Promise<CommandResult> {
  const { promise, resolve, reject } = Promise.withResolvers<CommandResult>();
  const onExit = (code: number | null): void => reject(new Error(`the command's process ended with ${code}`));
  server.once("message", resolve).once("exit", onExit);
  try {
    const result = await promise;
    return { ...result, stderr: withoutProgress(result.stderr) };
  } finally {
    server.off("message", resolve).off("exit", onExit);
  }
}

function startCommandServer(): ChildProcess {
  const server = fork(COMMAND_SERVER, [], {
    execArgv: FLAGS,
    env: { ...MEMORY, ...foreignEnvironment() },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  server.once("exit", () => (commandServer = null));
  server.channel?.unref();
  return server;
}

/** Starts `latchkey serve` with these roles and waits until it listens. What it writes to standard error goes to `log` as well. */
export async function startProcess(
  environment: Environment,
  roles: readonly string[],
  log: (text: string) => void,
  {
    program = OWN,
    processes = 1,
  }: { readonly program?: ServiceProgram | undefined; readonly processes?: number } = {},
): Promise<ServiceProcess> {
  const more = processes === 1 ? [] : ["--processes", String(processes)];
  const child = start(["serve", "--roles", roles.join(","), ...more], environment, program);
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

function start(
  arguments_: readonly string[],
  environment: Environment,
  { node, flags, main }: ServiceProgram,
  folder = process.cwd(),
): ChildProcess {
  return spawn(node, [...flags, main, ...arguments_], {
    cwd: folder,
    env: { ...MEMORY, ...foreignEnvironment(), ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
}
