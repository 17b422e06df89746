import "./lib/compile-cache.mjs";

await import("./quarantined.ts");
