import { spawn } from "node:child_process";
import { join } from "node:path";
import { LIMITED_BLUEPRINT } from "../../conformance/fixtures.ts";
import type { Installation } from "../service.ts";

const MAIN = join(import.meta.dirname, "../../conformance/main.ts");

/** The suite as an outsider runs it: a process of its own, with an address and keys. */
export async function runSuite(
  ...options: readonly string[]
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", MAIN, ...options], {
    stdio: ["ignore", "pipe", "pipe"],
    // Inside a test, node:test speaks a protocol of its own to its parent unless this is gone.
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== "NODE_TEST_CONTEXT")),
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, output };
}

/** With new keys of an installation that has the suite's documents. */
export async function optionsOf(
  installation: Installation,
  targetOrigin: string,
  baseUrl: string,
): Promise<string[]> {
  const keys = await Promise.all([
    installation.createKey("conformance-one"),
    installation.createKey("conformance-one", { blueprints: [LIMITED_BLUEPRINT] }),
    installation.createKey("conformance-two"),
  ]);
  return [
    ...["--base-url", baseUrl, "--target-origin", targetOrigin, "--api-key", keys[0] ?? ""],
    ...["--limited-api-key", keys[1] ?? "", "--other-api-key", keys[2] ?? ""],
  ];
}
