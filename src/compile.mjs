/**
 * Compiles what `latchkey serve` loads, into the cache next to the packages. For an image, whose file system is read-only when it runs: it
 * does this once, when it is built, with the flags and as the user of the service, as the cache is by both.
 */
import "./lib/compile-cache.mjs";
import { flushCompileCache } from "node:module";

await import("./service/composition.ts");
await import("./service/assemble.ts");
await Promise.all([import("./service/routes.ts"), import("./service/worker-role.ts")]);
flushCompileCache();
