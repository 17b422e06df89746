import { fileURLToPath } from "node:url";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

/** Where the program's own modules are, with their dependencies. */
const READABLE = ["src/", "node_modules/", "package.json"].map((path) => `--allow-fs-read=${PROJECT}${path}`);

/**
 * How a worker thread is started that reads what strangers have sent. By Node's permission model, a hole in what reads it writes no file,
 * starts no process or thread, loads no native code, and reads no files but the program's own and, because Node allows that by itself, those
 * below the working directory of the process. The model says nothing of the network. Nothing of the surroundings is passed on, preloaded
 * modules (`NODE_OPTIONS`) included.
 */
export const CONFINED = {
  env: {},
  argv: [],
  execArgv: ["--permission", ...READABLE],
} as const satisfies {
  readonly env: object;
  readonly argv: readonly string[];
  readonly execArgv: readonly string[];
};
