import { spawn, type ChildProcess } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unpackDebian, whyNoDebian } from "./debian-packages.ts";
import { eventually, PATIENCE_MS } from "./eventually.ts";

/** A display that nobody sees, and a full Chromium for it. */
export interface Display extends AsyncDisposable {
  /** For DISPLAY. */
  readonly name: string;
  /** The path of the Chromium. */
  readonly program: string;
}

/** X looks for its keymap's compiler at a path of the whole system, so it runs with the unpacked packages as its root. */
const whyNot = process.getuid?.() === 0 ? whyNoDebian() : "an X server from unpacked packages needs root";
export const needsDisplay = { skip: whyNot ?? false };

/** Fetched once with apt, 830 MB below node_modules/.cache; nothing is installed. `edit`: as of `openProgram`. */
export async function openDisplay(edit = ":"): Promise<Display> {
  const root = await unpackDebian({
    name: "window",
    what: "an X server with a full Chromium, which tests of windows use,",
    from: [{ suite: "own", packages: ["xvfb", "chromium", "dash"], withDependencies: true }],
    instead: "Is a Debian mirror reachable?",
  });
  for (const folder of ["dev", "tmp"]) mkdirSync(join(root, folder), { recursive: true });
  if (!existsSync(join(root, "dev/null"))) writeFileSync(join(root, "dev/null"), "");
  const { child, name } = await startServer(root);
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-window-"));
  chmodSync(folder, 0o755);
  const program = join(folder, "chromium");
  const libraries = join(root, "usr/lib", `${process.arch === "x64" ? "x86_64" : "aarch64"}-linux-gnu`);
  const lines = [
    "#!/bin/sh",
    `export LD_LIBRARY_PATH='${libraries}:${libraries}/pulseaudio'`,
    edit,
    `exec '${join(root, "usr/lib/chromium/chromium")}' "$@"`,
  ];
  writeFileSync(program, `${lines.join("\n")}\n`, { mode: 0o755 });
  return {
    name,
    program,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await new Promise<void>((resolve) => child.once("exit", () => resolve()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** It picks a free number, and writes it to its standard output. */
async function startServer(root: string): Promise<{ readonly child: ChildProcess; readonly name: string }> {
  const options = ["-displayfd", "1", "-screen", "0", "1280x900x24", "-nolisten", "tcp", "-ac"];
  const child = spawn("/usr/sbin/chroot", [root, "/usr/bin/Xvfb", ...options], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  process.once("exit", () => child.kill("SIGKILL"));
  let [output, errors] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const number = await eventually(
    "an X server",
    () => {
      if (child.exitCode !== null) throw new Error(`the X server ended:\n${errors}`);
      return /^(\d+)\n/.exec(output)?.[1];
    },
    PATIENCE_MS,
  );
  return { child, name: `:${number}` };
}
