import "./lib/compile-cache.mjs";

const { runCommandLine } = await import("./service/composition.ts");
process.exitCode = await runCommandLine(process.argv.slice(2));
