/** `npm run bench -- NAME [options]`: one of the benches of docs/performance.md. */
const BENCHES = {
  api: "requests a second of the public API, beside a bare server and SQL alone",
  runs: "runs a second from trigger to completed, beside other engines and SQL alone",
  vault: "what the vault seals and opens a second, beside what it is made of",
  rotation: "100,000 credentials to a new master key while the service works",
  browser: "a login and three pages in a browser, beside a bare script of playwright-core",
  partitions: "what partitions by month would cost and save",
  metrics: "what metrics cost a request, counted and not counted in turns in one process",
  sizes: "what a run leaves in the database, its log and the object store",
  data: "large record sets through a run, beside parsing and compressing them",
} as const;

const [name = ""] = process.argv.slice(2);
if (!Object.hasOwn(BENCHES, name)) {
  const lines = Object.entries(BENCHES).map(([each, what]) => `  ${each.padEnd(10)}${what}`);
  console.log(`npm run bench -- NAME [options]\n\n${lines.join("\n")}\n\nEach takes --help.`);
  process.exit(name === "--help" ? 0 : 2);
}
await import(`./${name}.ts`);

export {};
