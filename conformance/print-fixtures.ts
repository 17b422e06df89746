/** Prints the documents that the suite needs, for `latchkey apply -f`. */
import { parseArgs } from "node:util";
import { DEFAULT_TARGET_ORIGIN, fixtureDocuments, readTargetOrigin } from "./fixtures.ts";

const USAGE = `Usage: node conformance/print-fixtures.ts [--target-origin ORIGIN]

Prints the accounts, strategies and Blueprints of the conformance suite. ORIGIN is where the
deployment reaches the suite's fixture target (default ${DEFAULT_TARGET_ORIGIN}).`;

try {
  const { values } = parseArgs({
    options: {
      "target-origin": { type: "string", default: DEFAULT_TARGET_ORIGIN },
      help: { type: "boolean" },
    },
  });
  process.stdout.write(
    values.help === true ? `${USAGE}\n` : fixtureDocuments(readTargetOrigin(values["target-origin"])),
  );
} catch (error) {
  console.error(`${(error as Error).message}\n\n${USAGE}`);
  process.exitCode = 2;
}
