import { describe, test } from "node:test";
import { openCaller, type Caller } from "./caller.ts";
import type { Target } from "./target.ts";

/** What is tested, and the system that its fixture Blueprints read. */
export interface Deployment {
  /** The service address, `/api/v1` included, without a trailing slash. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly otherApiKey: string;
  readonly limitedApiKey: string;
  readonly target: Target;
}

let current: Deployment | null = null;

/** Called once, before the first section is loaded: the sections run in the same process. */
export function setDeployment(deployment: Deployment): void {
  current = deployment;
}

export function deployment(): Deployment {
  if (current === null) throw new Error("Run the suite with conformance/main.ts; --help shows how.");
  return current;
}

/** A customer's backend with a key that may do everything in its account. */
export const first = (): Caller => openCaller(deployment().baseUrl, deployment().apiKey);
/** The backend of another customer. */
export const other = (): Caller => openCaller(deployment().baseUrl, deployment().otherApiKey);
/** The first account's key that may use one Blueprint only. */
export const limited = (): Caller => openCaller(deployment().baseUrl, deployment().limitedApiKey);

const citationsOf = new Map<string, readonly string[]>();

/** `Spec, <Section>[ <rule>]: "<words of the sentence>"`: CONTRIBUTING.md, habit 15. */
export type Citation = `Spec, ${string}: "${string}"`;

const AT_ONCE = 6;
const CASE_TIMEOUT_MS = 60_000;

/** One case: the sentences of the interface that it proves, and what it does, in words that no other case has. */
export interface Case {
  readonly citations: readonly Citation[];
  readonly what: string;
  readonly body: () => Promise<void>;
}

export function prove(
  citations: Citation | readonly Citation[],
  what: string,
  body: () => Promise<void>,
): Case {
  return { citations: typeof citations === "string" ? [citations] : citations, what, body };
}

/** The cases of one section of the interface. They share nothing but what `flows.ts` makes once, and run side by side. */
export function section(name: string, cases: readonly Case[]): void {
  for (const { what, citations } of cases) {
    if (citationsOf.has(what)) throw new Error(`Two cases are called "${what}".`);
    citationsOf.set(what, citations);
  }
  void describe(name, { concurrency: AT_ONCE }, () => {
    for (const { what, body } of cases) void test(what, { timeout: CASE_TIMEOUT_MS }, body);
  });
}

export function countCases(): number {
  return citationsOf.size;
}

/** The citations of a declared case; undefined for what is no case. */
export function findCitations(what: string): readonly string[] | undefined {
  return citationsOf.get(what);
}
