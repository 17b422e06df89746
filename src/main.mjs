import "./lib/compile-cache.mjs";

const { runCommandLine } = await import("./composition.ts");
process.exitCode = await runCommandLine(process.argv.slice(2));
