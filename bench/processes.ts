import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";

/** A program of the bench as a process of its own, spoken to by messages. */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** Sends a message and waits for the one that comes back. */
  ask<Answer>(message: object): Promise<Answer>;
}

export function startProgram(
  file: string,
  {
    environment = {},
    options = [],
    roles = [],
  }: { environment?: Record<string, string>; options?: string[]; roles?: readonly string[] } = {},
): Program {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), [...roles], {
    execArgv: ["--disable-warning=ExperimentalWarning", ...options],
    env: { ...process.env, ...environment },
    // What they print is no part of the bench's tables.
    stdio: ["ignore", 2, 2, "ipc"],
  });
  return {
    pid: child.pid ?? 0,
    ask: async <Answer>(message: object) => {
      child.send(message);
      return await nextMessage<Answer>(child, file);
    },
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function nextMessage<Answer>(child: ChildProcess, file: string): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const failed = (): void => reject(new Error(`${file} ended before it answered`));
    child.once("exit", failed);
    child.once("message", (message) => {
      child.off("exit", failed);
      resolve(message as Answer);
    });
  });
}
