import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const PROJECT = fileURLToPath(new URL("../../", import.meta.url));

/**
 * The program's own modules, and every `node_modules` in which Node looks for their dependencies: an installer may hoist them above
 * the program, or make the folder a link.
 */
const READABLE = [
  join(PROJECT, "src/"),
  join(PROJECT, "package.json"),
  ...ancestorsOf(PROJECT)
    .map((folder) => join(folder, "node_modules/"))
    .filter(existsSync)
    .flatMap((folder) => [folder, realpathSync(folder)]),
].map((path) => `--allow-fs-read=${path}`);

/** The folder itself and all that contain it. */
function ancestorsOf(folder: string): readonly string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...ancestorsOf(above)];
}

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
