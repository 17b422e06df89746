/**
 * Runs one command line after another in a process that has loaded the program already: a tenth of what starting it takes. The
 * parent sends `CommandRequest`s, one at a time, and gets a `CommandResult` for each.
 */
import { runCommandLine } from "#service/composition.ts";
import type { CommandRequest, CommandResult } from "./service-process.ts";

process.on("message", ({ arguments: arguments_, environment, folder }: CommandRequest) => {
  process.chdir(folder);
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
  Object.assign(process.env, environment);
  void run(arguments_).then((result) => process.send?.(result));
});

async function run(arguments_: readonly string[]): Promise<CommandResult> {
  const stdout = capture(process.stdout);
  const stderr = capture(process.stderr);
  try {
    const code = await runCommandLine(arguments_);
    return { code, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    stdout.stop();
    stderr.stop();
    // A command listens for as long as its process lives.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.removeAllListeners(signal);
  }
}

/** Keeps what is written to a stream, in place of writing it. */
function capture(stream: NodeJS.WriteStream): { text(): string; stop(): void } {
  const chunks: Buffer[] = [];
  const write = (chunk: string | Uint8Array, ...others: unknown[]): boolean => {
    chunks.push(Buffer.from(chunk));
    const written = others.find((other) => typeof other === "function");
    if (written !== undefined) process.nextTick(written as () => void);
    return true;
  };
  Object.defineProperty(stream, "write", { value: write, configurable: true });
  return {
    text: () => Buffer.concat(chunks).toString("utf8"),
    // The prototype's is behind it.
    stop: () => void Reflect.deleteProperty(stream, "write"),
  };
}
