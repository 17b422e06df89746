import "./lib/compile-cache.mjs";

await import("./service/quarantined.ts");
