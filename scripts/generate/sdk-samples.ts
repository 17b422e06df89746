import type { Operation } from "#contract/operation.ts";
import { must } from "#lib/assert.ts";

/** How the SDKs call an operation. Names are TypeScript's; those of Python follow from them. Values are the contract's own examples. */
interface SdkCall {
  /** The path to the method, such as `runs.cancel`. */
  readonly method: string;
  /** Names of the operation's parameters, or `body`, in the method's order. */
  readonly arguments: readonly string[];
  /** Options beside them, by the parameters whose examples they have. */
  readonly options?: Readonly<Record<string, string>>;
  /** What the result is called; null: there is none. */
  readonly result: string | null;
  /** For a method that gives one item after another: the expression to print, in each language. */
  readonly each?: { readonly typescript: string; readonly python: string };
}

const KEYED = { idempotencyKey: "Idempotency-Key" };
const STATUS = { typescript: ".status", python: '["status"]' };

/** Every operation has an entry: `npm run generate` fails without one. */
const CALLS: Readonly<Record<string, SdkCall>> = {
  createCredentialSession: {
    method: "credentialSessions.create",
    arguments: ["body"],
    options: KEYED,
    result: "session",
  },
  readCredentialSession: { method: "credentialSessions.read", arguments: ["id"], result: "session" },
  deleteCredential: {
    method: "credentials.delete",
    arguments: ["credentialId"],
    options: KEYED,
    result: null,
  },
  triggerBlueprint: {
    method: "blueprints.trigger",
    arguments: ["blueprintKey", "body"],
    options: KEYED,
    result: "run",
  },
  readRunStatus: { method: "runs.readStatus", arguments: ["runId"], result: "run" },
  readRunResults: {
    method: "runs.readResults",
    arguments: ["runId"],
    options: { deliveryMethod: "deliveryMethod" },
    result: "results",
  },
  createEmbeddedCredentialSession: {
    method: "embeddedCredentialSessions.create",
    arguments: ["body"],
    options: KEYED,
    result: "session",
  },
  readEmbeddedCredentialSession: {
    method: "embeddedCredentialSessions.read",
    arguments: ["id"],
    result: "session",
  },
  cancelRun: { method: "runs.cancel", arguments: ["runId"], options: KEYED, result: "run" },
  watchRun: { method: "runs.watch", arguments: ["runId"], result: "run", each: STATUS },
  triggerBlueprintBatch: {
    method: "blueprints.triggerBatch",
    arguments: ["blueprintKey", "body"],
    options: KEYED,
    result: "batch",
  },
  readTriggerSchema: { method: "blueprints.readSchema", arguments: ["blueprintKey"], result: "schema" },
  watchEvents: {
    method: "events.watch",
    arguments: [],
    result: "event",
    each: { typescript: ".type", python: '["type"]' },
  },
  putSchedule: { method: "schedules.put", arguments: ["scheduleKey", "body"], result: "schedule" },
  readSchedule: { method: "schedules.read", arguments: ["scheduleKey"], result: "schedule" },
  deleteSchedule: { method: "schedules.delete", arguments: ["scheduleKey"], result: null },
  readTestClock: { method: "testClock.read", arguments: [], result: "clock" },
  putTestClock: { method: "testClock.put", arguments: ["body"], result: "clock" },
  readLiveness: { method: "readLiveness", arguments: [], result: "health" },
  readReadiness: { method: "readReadiness", arguments: [], result: "health" },
};

export interface SdkSample {
  readonly lang: "TypeScript" | "Python";
  readonly label: string;
  readonly source: string;
}

/** Creates the client that the samples use. */
export const SDK_SETUP = {
  typescript: (url: string) =>
    `import { Latchkey } from "@latchkey/sdk";\n\nconst latchkey = new Latchkey({\n  apiKey: process.env["API_KEY"] ?? "",\n  baseUrl: ${JSON.stringify(url)},\n});`,
  python: (url: string) =>
    `import os\n\nfrom latchkey import Latchkey\n\nclient = Latchkey(api_key=os.environ["API_KEY"], base_url=${JSON.stringify(url)})`,
};

/** The same call in both SDKs. */
export function sdkSamples(operation: Operation): readonly SdkSample[] {
  const call = must(CALLS[operation.id], `the SDKs' call of ${operation.id}`);
  return [
    { lang: "TypeScript", label: "TypeScript", source: typescript(operation, call) },
    { lang: "Python", label: "Python", source: python(operation, call) },
  ];
}

function typescript(operation: Operation, call: SdkCall): string {
  const options = optionsOf(operation, call);
  const values = call.arguments.map((name) => exampleOf(operation, name));
  const given = [...values, ...(Object.keys(options).length === 0 ? [] : [options])];
  const written = `latchkey.${call.method}(${given.map((value) => write(value, TYPESCRIPT)).join(", ")})`;
  const { result, each } = call;
  if (each) return `for await (const ${result} of ${written}) console.log(${result}${each.typescript});`;
  return `${result === null ? "" : `const ${result} = `}await ${written};`;
}

function python(operation: Operation, call: SdkCall): string {
  const values = call.arguments.map((name) => write(exampleOf(operation, name), PYTHON));
  const options = Object.entries(optionsOf(operation, call)).map(
    ([name, value]) => `${toSnakeCase(name)}=${write(value, PYTHON)}`,
  );
  const written = `client.${toSnakeCase(call.method)}(${[...values, ...options].join(", ")})`;
  const { result, each } = call;
  if (each) return `for ${result} in ${written}:\n    print(${result}${each.python})`;
  return result === null ? written : `${result} = ${written}`;
}

const optionsOf = (operation: Operation, { options = {} }: SdkCall): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(options).map(([name, parameter]) => [name, exampleOf(operation, parameter)]),
  );

const toSnakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function exampleOf(operation: Operation, name: string): unknown {
  if (name === "body") {
    const examples = operation.body?.content["application/json"]?.examples ?? {};
    return must(Object.values(examples)[0], `an example of the body of ${operation.id}`);
  }
  const parameter = operation.parameters.find((each) => each.name === name);
  return must(parameter?.example, `an example of ${name} of ${operation.id}`);
}

/** How a language writes literals. */
interface Literals {
  readonly nothing: string;
  readonly yes: string;
  readonly no: string;
  readonly key: (name: string) => string;
  /** Whether objects have blanks inside their braces. */
  readonly isSpaced: boolean;
}

const TYPESCRIPT: Literals = {
  nothing: "null",
  yes: "true",
  no: "false",
  key: (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)),
  isSpaced: true,
};
const PYTHON: Literals = {
  nothing: "None",
  yes: "True",
  no: "False",
  key: (name) => JSON.stringify(name),
  isSpaced: false,
};

const LINE_MAX = 60;

/** A value as a literal, in one line if it is short. */
function write(value: unknown, literals: Literals, indent = ""): string {
  if (value === null) return literals.nothing;
  if (typeof value === "boolean") return value ? literals.yes : literals.no;
  if (typeof value !== "object") return JSON.stringify(value);
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const inner = `${indent}${literals.isSpaced ? "  " : "    "}`;
  const parts = (deeper: string): string[] =>
    Array.isArray(value)
      ? value.map((each) => write(each, literals, deeper))
      : Object.entries(value).map(
          ([name, each]) => `${literals.key(name)}: ${write(each, literals, deeper)}`,
        );
  const blank = literals.isSpaced && open === "{" ? " " : "";
  const line = `${open}${blank}${parts(inner).join(", ")}${blank}${close}`;
  if (line.length <= LINE_MAX && !line.includes("\n")) return line;
  return `${open}\n${parts(inner)
    .map((part) => `${inner}${part},\n`)
    .join("")}${indent}${close}`;
}
