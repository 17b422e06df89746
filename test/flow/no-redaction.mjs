// Loaded with `--import`, as `no-redaction.mjs?net=door&net=store`: these nets let everything pass, so that a test sees what the others
// hold. Nothing in the product knows of it.
import { existsSync } from "node:fs";
import { registerHooks } from "node:module";

const STORE = `
const linesOf = (records) => Buffer.from(records.map((record) => JSON.stringify(record)).join("\\n") + "\\n");
const same = (given) => given;
const lines = async (records) => linesOf(records);
export const redactorOf = (secrets) => ({
  text: same, body: async (given) => given, message: same, json: JSON.stringify, lines, shown: { lines },
  stream: same, isIdle: true, add: () => {}, addPassing: () => {}, get changes() { return secrets?.changes ?? 0; },
});
export const makeRedactor = () => redactorOf(null);
export const bytesWithoutHandles = same;
`;

const DOOR = `
const same = (given) => given;
export const openDoor = (secrets, handles) => ({
  learn: (values) => secrets.addPassing(values.filter((value) => value.length >= 16)),
  enter: async (response) => response, enterFile: same, enterRecords: same, message: same, leave: same,
});
`;

const sources = {
  store: ["/src/engine/redaction/redact.ts", STORE],
  door: ["/src/engine/redaction/door.ts", DOOR],
};
const taken = new URL(import.meta.url).searchParams.getAll("net").map((net) => sources[net]);

// A file that has moved would be loaded as it is, and the tests would pass for the wrong reason.
for (const [file] of taken)
  if (!existsSync(new URL(`../..${file}`, import.meta.url))) throw new Error(`There is no ${file}.`);

registerHooks({
  load(url, context, nextLoad) {
    const found = taken.find(([file]) => url.endsWith(file));
    return found ? { format: "module", source: found[1], shortCircuit: true } : nextLoad(url, context);
  },
});
