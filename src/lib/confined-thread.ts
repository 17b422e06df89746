import { fileURLToPath } from "node:url";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

/** The folders of the program's own modules and their dependencies. */
const READABLE = ["src/", "node_modules/", "package.json"].map((path) => `--allow-fs-read=${PROJECT}${path}`);

/**
 * Options for a worker thread that parses untrusted data. Under Node's permission model, an exploited parser can't write files, start
 * processes or threads, or load native code, and can only read the program's own files and, because Node allows it, those below the
 * working directory. The model does not restrict the network. The thread gets no environment and no preloaded modules (`NODE_OPTIONS`).
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
