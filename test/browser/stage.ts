import { type StepsMeans, runSteps } from "#answers/browser/run-steps.ts";
import type { StepConfig } from "#answers/browser/define-step.ts";
import type { StepBrowser } from "#answers/browser/step-browser.ts";
import { browseAs, browseToLogIn, type BrowseMeans } from "#engine/login/browse.ts";
import { openBothNets } from "#engine/redaction/both-nets.ts";
import { openRunSecrets } from "#engine/redaction/run-secrets.ts";
import { openEvaluator } from "#expressions/evaluator.ts";
import type { JsonObject } from "#domain/json.ts";
import { openLog } from "#lib/log.ts";
import { openBrowsers } from "#outbound/browser/browsers.ts";
import { openGate } from "#outbound/gate.ts";
import type { LoginBrowser } from "#strategies/define-login.ts";
import { openJar } from "#strategies/http/session-jar.ts";
import { openProgram } from "./program.ts";

/** Browsers of the engine behind a gate that reaches loopback, without a service. */
export interface Stage extends AsyncDisposable {
  readonly means: BrowseMeans;
  browse<T>(work: (browser: StepBrowser) => Promise<T>): Promise<T>;
  logIn<T>(work: (browser: LoginBrowser) => Promise<T>): Promise<T>;
}

export async function openStage(
  origin: string,
  signal = new AbortController().signal,
  secrets: readonly string[] = [],
): Promise<Stage> {
  const program = await openProgram();
  const gate = openGate({ allow: ["127.0.0.0/8"] });
  const browsers = openBrowsers({
    gate,
    log: openLog({ level: "silent", format: "json" }),
    settings: {
      program: program.path,
      max: 2,
      memoryBytes: 2 ** 30,
      sandbox: true,
      network: "host",
      uids: { first: 61_184, count: 100 },
    },
  });
  const means: BrowseMeans = {
    browsers,
    origins: [origin],
    resources: [],
    login: null,
    jar: openJar(),
    beforeHop: null,
    nets: () => openBothNets(openRunSecrets(secrets)),
  };
  return {
    means,
    browse: async (work) => await browseAs(means, signal, work),
    logIn: async (work) => await browseToLogIn(means, signal, work),
    [Symbol.asyncDispose]: async () => {
      await browsers.close();
      await gate.close();
      program.remove();
    },
  };
}

/** The service's own expressions, in their thread. */
const evaluator = openEvaluator();

/** Does steps as a login or a node does; returns what they have read. */
export async function doSteps(
  browser: StepBrowser,
  steps: readonly StepConfig[],
  {
    place = "node",
    variables = {},
    looks = true,
  }: { place?: StepsMeans["place"]; variables?: JsonObject; looks?: boolean } = {},
): Promise<{
  readonly rows: readonly JsonObject[];
  readonly fields: JsonObject;
  readonly begun: readonly string[];
}> {
  const rows: JsonObject[] = [];
  const fields: Record<string, JsonObject[string]> = {};
  const begun: string[] = [];
  await runSteps(
    {
      place,
      browser,
      sink: {
        rows: (read) => void rows.push(...read),
        fields: (read) => void Object.assign(fields, read),
        file: async () => await Promise.reject(new Error("no node")),
      },
      render: async (template) => await evaluator.bind(variables).render(template),
      looks,
      begin: (step) => void begun.push(step),
    },
    steps,
  );
  return { rows, fields, begun };
}
