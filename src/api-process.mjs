import "./lib/compile-cache.mjs";

await import("./service/api-process.ts");
