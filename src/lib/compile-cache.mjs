/**
 * Imported first by what a process or a thread begins with: a start takes half the time when the code has been compiled before.
 * JavaScript, like its importers, because a file of TypeScript loads Node's compiler before it can say that there is a cache. The
 * cache lies beside the packages, so that anyone who can change it can change the code as well; where it can't be written
 * there is none.
 */
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/latchkey", import.meta.url)));
