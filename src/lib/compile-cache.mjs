/**
 * Imported first by the entry points of processes and threads: a start takes half the time if the code was compiled before.
 * Written in JavaScript, like its importers, because a TypeScript file would load Node's compiler before it could enable the
 * cache. The cache is stored next to the packages, so that only someone who can change the code can change it; if that folder is
 * not writable, there is no cache.
 */
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/latchkey", import.meta.url)));
