import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// Before anything else is loaded: a start takes half the time when the code has been compiled before. The cache lies beside
// the packages, so that anyone who can change it can change the code as well; where it can't be written there is none.
enableCompileCache(fileURLToPath(new URL("../node_modules/.cache/latchkey", import.meta.url)));

const { runCommandLine } = await import("./composition.ts");
process.exitCode = await runCommandLine(process.argv.slice(2));
