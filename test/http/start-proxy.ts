import type { ChildProcess } from "node:child_process";
import { rmSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const START_TRIES_MAX = 1_000;

export interface StartedProxy {
  readonly name: string;
  /** Its stderr is a pipe. */
  readonly child: ChildProcess;
  readonly port: number;
  /** Goes with it. */
  readonly folder: string;
  /** What else says why it did not start. */
  readonly readLog?: () => string;
}

/** Waits until a reverse proxy listens at its port of 127.0.0.1; ends it when it is disposed of. */
export async function untilListening({
  name,
  child,
  port,
  folder,
  readLog = () => "",
}: StartedProxy): Promise<AsyncDisposable> {
  let complaints = "";
  child.stderr?.on("data", (chunk: Buffer) => (complaints += chunk.toString("utf8")));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const end = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  for (let tries = 0; !(await isListening(port)); tries++) {
    if (tries > START_TRIES_MAX || child.exitCode !== null) {
      const log = readLog();
      await end();
      throw new Error(`${name} does not answer:\n${complaints}${log}`);
    }
    await sleep(20);
  }
  return { [Symbol.asyncDispose]: end };
}

/** Whether somebody listens at this port of 127.0.0.1. */
async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return await new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
  }).finally(() => socket.destroy());
}
