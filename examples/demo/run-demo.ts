import { CommandFailed, paint, print, tell } from "#cli/output.ts";
import { stopSignal } from "#cli/stop-signal.ts";
import { LatchkeyError } from "../../sdk/typescript/src/latchkey.ts";
import { openBackend } from "./backend.ts";
import { ACCOUNT_SECRETS, LOGIN } from "./end-user-logins.ts";
import type { Example } from "./example.ts";
import { findExamples } from "./examples.ts";
import { PORTAL, playInvoices } from "./invoices.ts";
import type { Environment } from "./processes.ts";
import { heading, RETURN_URL } from "./steps.ts";
import { openSurroundings, type Needs, type Surroundings } from "./surroundings.ts";

const PORTAL_DELAY_MS = 120;
/** The portal's delay for the named examples, which send many requests. */
const PORTAL_DELAY_SHORT_MS = 15;

export interface DemoOptions {
  readonly name: string | undefined;
  readonly once: boolean;
  /** Why this machine has no browser, with the remedy; null: it has one. */
  readonly whyNoBrowser: () => Promise<string | null>;
}

/** Plays the whole flow, or the named examples, on real parts. With `once` it ends after printing. */
export async function runDemo(
  foreign: Environment,
  { name, once, whyNoBrowser }: DemoOptions,
): Promise<void> {
  const examples = name === undefined ? null : await playable(findExamples(name), whyNoBrowser);
  // Ctrl-C in the middle, or a closed terminal: the programs are stopped and the temporary folder is removed as well.
  const interrupt = stopSignal(["SIGINT", "SIGTERM", "SIGHUP"]);
  heading("1. The programs");
  const surroundings = await openSurroundings(foreign, needsOf(examples), print, interrupt.signal);
  try {
    const played = examples === null ? play(surroundings) : playExamples(surroundings, examples);
    await interrupt.race(played.catch(explain));
    if (once) return;
    if (examples === null) {
      const app = await interrupt.race(surroundings.startCustomerApp());
      print(`Ledgerly, a customer's application:  ${app}`);
    }
    print(paint("bold", "\nEverything stays up until Ctrl-C."));
    await interrupt.come;
  } finally {
    await surroundings.close();
  }
}

/** What the SDK throws says what the service has refused. */
function explain(error: unknown): never {
  if (error instanceof LatchkeyError) throw new CommandFailed(error.message);
  throw error;
}

/** The examples that this machine can play. Throws CommandFailed if it can play none of them. */
async function playable(
  examples: readonly Example[],
  whyNoBrowser: DemoOptions["whyNoBrowser"],
): Promise<readonly Example[]> {
  const others = examples.filter(({ needsBrowser }) => needsBrowser !== true);
  if (others.length === examples.length) return examples;
  const why = await whyNoBrowser();
  if (why === null) return examples;
  if (others.length === 0) throw new CommandFailed(`This example needs a browser. ${why}`);
  const left = examples.filter((example) => !others.includes(example)).map((example) => example.name);
  tell(`Without the example ${left.join(", ")}, which needs a browser. ${why}`);
  return others;
}

function needsOf(examples: readonly Example[] | null): Needs {
  const documents = (examples ?? findExamples("invoices")).flatMap((example) => example.documents);
  return {
    documents: [...new Set(["account.yaml", ...documents])],
    portalDelayMs: examples === null ? PORTAL_DELAY_MS : PORTAL_DELAY_SHORT_MS,
    secrets: documents.includes("strategies/northwind-bank.yaml") ? ACCOUNT_SECRETS : {},
  };
}

async function play(surroundings: Surroundings): Promise<void> {
  const backend = openBackend(surroundings.serviceUrl, surroundings.apiKey, surroundings.stopped);
  await playInvoices(backend);
  const { latchkey, signal } = backend;
  const session = await latchkey.credentialSessions.create(
    { strategy_id: PORTAL, return_url: RETURN_URL },
    { signal },
  );
  heading("6. To look at");
  print(`A hosted form, of a second session:  ${session.hosted_url}`);
  print(`  (sign in with ${LOGIN.username} / ${LOGIN.password})`);
  showPlaces(surroundings);
}

async function playExamples(surroundings: Surroundings, examples: readonly Example[]): Promise<void> {
  const backend = openBackend(surroundings.serviceUrl, surroundings.apiKey, surroundings.stopped);
  for (const example of examples) {
    heading(`Example ${example.name}: ${example.shows}`);
    await example.play({ backend, surroundings });
  }
  heading("To look at");
  showPlaces(surroundings);
  print(`What the portal has stored and received:  ${surroundings.portalUrl}/__control`);
}

function showPlaces({ serviceUrl, portalUrl, operator }: Surroundings): void {
  print(`The dashboard:                       ${serviceUrl}/dashboard`);
  print(`  (sign in with ${operator.email} / ${operator.password})`);
  print(`Health:                              ${serviceUrl}/healthz`);
  print(`Documentation:                       ${serviceUrl}/docs`);
  print(`The portal:                          ${portalUrl}`);
}
