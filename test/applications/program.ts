import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { placesIn, unpackDebian } from "../debian-packages.ts";
import { freePort } from "../free-port.ts";
import { installPackages } from "../npm-packages.ts";

/** An application that nobody here wrote. */
interface Application {
  readonly name: string;
  /** Below the folder of its packages. */
  readonly program: string;
  /** Writes its settings, and gives its arguments and variables. */
  configure(place: Place): {
    readonly arguments: readonly string[];
    readonly environment?: Readonly<Record<string, string>>;
  };
}

/** Of Debian, as it is installed there. */
interface DebianApplication extends Application {
  readonly packages: readonly string[];
}

/** Of npm: `program` is a file for Node. */
interface NpmApplication extends Application {
  readonly packages: Readonly<Record<string, string>>;
  readonly overrides?: Readonly<Record<string, string>>;
}

interface Place {
  /** Of the packages. */
  readonly root: string;
  /** The program's own, empty. */
  readonly folder: string;
  readonly port: number;
}

export interface Program extends AsyncDisposable {
  readonly url: string;
  readonly folder: string;
}

const TRIES_MAX = 1_000;

/** Fetched once with apt, below node_modules/.cache: no root is needed, and nothing is installed. Its own C library comes along. */
export async function startProgram(application: DebianApplication): Promise<Program> {
  const { name, packages, program } = application;
  const root = await unpackDebian({
    name,
    what: `${name}, an application that the tests connect,`,
    from: [{ suite: "trixie", packages, withDependencies: true }],
    instead: "Is a Debian mirror reachable?",
  });
  const { loader, libraries } = placesIn(root);
  return await start(application, root, [loader, "--library-path", libraries, join(root, program)]);
}

/** Installed once with npm, below node_modules/.cache. */
export async function startPackage(application: NpmApplication): Promise<Program> {
  const { name, packages, overrides = {}, program } = application;
  const root = installPackages({ name, packages, overrides, instead: "Is npm's registry reachable?" });
  return await start(application, root, [process.execPath, join(root, "node_modules", program)]);
}

async function start(
  application: Application,
  root: string,
  [command = "", ...before]: readonly string[],
): Promise<Program> {
  const { name } = application;
  const folder = mkdtempSync(join(tmpdir(), `latchkey-${name}-`));
  const port = await freePort();
  const { arguments: given, environment } = application.configure({ root, folder, port });
  const child = spawn(command, [...before, ...given], {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const end = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; !(await answers(url)); tries++) {
    if (tries > TRIES_MAX || child.exitCode !== null) {
      await end();
      throw new Error(`${name} does not answer:\n${output}`);
    }
    await sleep(20);
  }
  return { url, folder, [Symbol.asyncDispose]: end };
}

async function answers(url: string): Promise<boolean> {
  return await fetch(url).then(
    async (response) => {
      await response.arrayBuffer();
      return true;
    },
    () => false,
  );
}
