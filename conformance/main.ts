/**
 * The black-box conformance suite: every case says which sentence of the interface it proves. It needs an address, three keys
 * and the documents of `print-fixtures.ts`, and nothing of the service's own code.
 */
import { parseArgs } from "node:util";
import { DEFAULT_TARGET_ORIGIN, LIMITED_BLUEPRINT, readTargetOrigin } from "./fixtures.ts";
import { runSections } from "./run-sections.ts";
import { setDeployment } from "./suite.ts";
import { startTarget } from "./target.ts";

const USAGE = `Usage: npm run conformance -- --base-url URL --api-key KEY --other-api-key KEY --limited-api-key KEY

  --base-url URL         the service address, /api/v1 included: http://127.0.0.1:8080/api/v1
  --api-key KEY          a key of account conformance-one
  --limited-api-key KEY  a key of account conformance-one for the Blueprint ${LIMITED_BLUEPRINT} alone, with the scope runs
  --other-api-key KEY    a key of account conformance-two
  --target-origin URL    where the service reaches the fixture target, which the suite starts
                         on that port of this machine (default ${DEFAULT_TARGET_ORIGIN})
  --only TEXT            only the sections whose name contains TEXT
  --help                 this text

Before, on the deployment (which must be allowed to reach the target: LATCHKEY_EGRESS_ALLOW=127.0.0.1/32):

  node conformance/print-fixtures.ts [--target-origin URL] > fixtures.yaml
  latchkey apply -f fixtures.yaml
  latchkey keys create --account conformance-one
  latchkey keys create --account conformance-one --blueprints ${LIMITED_BLUEPRINT}
  latchkey keys create --account conformance-two

Exit codes: 0 every case passed, 1 a case failed, 2 a wrong or missing option.`;

const OPTIONS = {
  "base-url": { type: "string" },
  "api-key": { type: "string" },
  "other-api-key": { type: "string" },
  "limited-api-key": { type: "string" },
  "target-origin": { type: "string", default: DEFAULT_TARGET_ORIGIN },
  only: { type: "string", default: "" },
  help: { type: "boolean", default: false },
} as const;

const REQUIRED = ["base-url", "api-key", "other-api-key", "limited-api-key"] as const;

process.exitCode = await main(process.argv.slice(2));

async function main(arguments_: string[]): Promise<number> {
  let values;
  let targetOrigin;
  try {
    ({ values } = parseArgs({ args: arguments_, options: OPTIONS }));
    targetOrigin = readTargetOrigin(values["target-origin"]);
  } catch (error) {
    return refuse((error as Error).message);
  }
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const missing = REQUIRED.filter((name) => (values[name] ?? "") === "");
  if (missing.length > 0) return refuse(`Missing: ${missing.map((name) => `--${name}`).join(", ")}.`);
  const baseUrl = (values["base-url"] ?? "").replace(/\/+$/, "");
  if (!/^https?:\/\/\S+\/api\/v1$/.test(baseUrl))
    return refuse("--base-url must be a URL that ends with /api/v1.");
  return await runAgainst(baseUrl, values, targetOrigin);
}

async function runAgainst(
  baseUrl: string,
  values: Partial<Record<string, string | boolean>>,
  targetOrigin: string,
): Promise<number> {
  let target;
  try {
    target = await startTarget(targetOrigin);
  } catch (error) {
    return refuse(
      `The fixture target can't listen at ${targetOrigin}: ${(error as Error).message}. Choose another --target-origin.`,
    );
  }
  setDeployment({
    baseUrl,
    apiKey: String(values["api-key"]),
    otherApiKey: String(values["other-api-key"]),
    limitedApiKey: String(values["limited-api-key"]),
    target,
  });
  try {
    const isPassed = await runSections(String(values["only"]));
    return isPassed ? 0 : 1;
  } finally {
    await target.close();
  }
}

function refuse(message: string): number {
  console.error(`${message}\nSee --help.`);
  return 2;
}
