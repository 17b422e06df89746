import { randomBytes } from "node:crypto";
import type { BlobStore } from "#blobs/store.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import type { NewResult } from "#db/runs/run-results.ts";
import type { Blueprint } from "#domain/blueprint.ts";
import type { JsonObject } from "#domain/json.ts";
import type { NewEvidence } from "#domain/page-evidence.ts";
import type { ShownAnswer } from "#domain/shown-answer.ts";
import { dismissedIn } from "#answers/browser/click-away.ts";
import type { LocatorConfig } from "#answers/browser/locator.ts";
import { resourcesOf, type Strategy } from "#domain/strategy.ts";
import { StepFailure } from "#answers/browser/step-failure.ts";
import type { Value } from "#domain/value.ts";
import type { Evaluator } from "#expressions/evaluator.ts";
import { must } from "#lib/assert.ts";
import { Secret } from "#lib/secret.ts";
import type { Browsers } from "#outbound/browser/browsers.ts";
import type { BrowserState } from "#outbound/browser/state.ts";
import type { LoginSession } from "#strategies/define-login.ts";
import { systemClock } from "#lib/clock.ts";
import { openHmac } from "#lib/hmac.ts";
import { describeError, type Log } from "#lib/log.ts";
import { systemRandom } from "#lib/random.ts";
import { openJar } from "#strategies/http/session-jar.ts";
import { executeNode } from "#engine/execute-node.ts";
import { executeNodes } from "#engine/execute-nodes.ts";
import { namesOf } from "#engine/document-names.ts";
import { localJournal, type LocalRules } from "./local-journal.ts";
import { logInLocally, type LocalCredential, type LocalLoginServices } from "#engine/login/local-login.ts";
import { secretsOfAllFields, sessionSecrets } from "#engine/login/login-secrets.ts";
import { openDoor, type Door } from "#engine/redaction/door.ts";
import { openHandles, type HandleMac } from "#engine/redaction/handles.ts";
import { planOnce, type RunPlan } from "#engine/plan-run.ts";
import { blankStorage, recordPages, replayPages, type RecordedPages } from "./page-recording.ts";
import { recordTarget, replayTarget, type Exchange } from "./recording.ts";
import { makeRedactor, redactorOf, type Redactor } from "#engine/redaction/redact.ts";
import type { NodeOutput, PlannedNode } from "#engine/run-context.ts";
import { RunFailure, RunParked, RunStopped } from "#engine/run-ended.ts";
import { cookieSecrets, openRunSecrets } from "#engine/redaction/run-secrets.ts";
import { Scratch } from "#engine/outputs/spool.ts";
import { browseAs } from "#engine/login/browse.ts";
import { openTarget, type TargetSession } from "#engine/login/target-session.ts";
import { Tallies } from "#engine/tallies.ts";

export interface LocalServices extends Omit<LocalLoginServices, "gate"> {
  /** null: nothing is sent; `exchanges` answer. */
  readonly gate: LocalLoginServices["gate"] | null;
  readonly blobs: BlobStore;
  readonly expressions: Evaluator;
  readonly log: Log;
  readonly scratchFolder: string;
}

export interface LocalRun {
  readonly id: string;
  readonly key: string;
  readonly blueprint: Blueprint;
  readonly inputs: ReadonlyMap<string, Value>;
  readonly metadata: JsonObject;
  /** By slot, of the Blueprint's slots. */
  readonly strategies: ReadonlyMap<string, Strategy>;
  readonly credentials: ReadonlyMap<string, LocalCredential>;
  readonly rules: LocalRules;
  /** Recorded exchanges are added here; a replay reads its answers from here. */
  readonly exchanges: Exchange[];
  /** The same for the pages of browsers. null: the recording has none. */
  readonly pages: RecordedPages | null;
}

/** A node that has been executed or has failed. */
export interface ExecutedNode {
  readonly planned: PlannedNode;
  readonly durationMs: number;
  /** null: it is an output, or it failed. */
  readonly output: NodeOutput | null;
  readonly warnings: readonly string[];
  readonly failed: boolean;
}

export type LocalOutcome =
  | { readonly kind: "completed"; readonly results: ReadonlyMap<string, NewResult> }
  | {
      readonly kind: "failed";
      readonly message: string;
      readonly answer: ShownAnswer | null;
      /** What the page of the login's browser showed. */
      readonly evidence: NewEvidence | null;
    }
  /** The run stopped at a review or at an uncertain write. */
  | { readonly kind: "parked" };

/**
 * Executes a Blueprint with the service's engine, but without a service or a database: the journal is in memory, and every node's
 * records are kept so that they can be shown. Nothing of the run is kept after the call. `leaves` redacts output that leaves the
 * machine: all values of the credentials, not only the secret ones.
 */
export async function runLocally(
  services: LocalServices,
  asked: LocalRun,
  onNode: (node: ExecutedNode) => Promise<void>,
  onEvidence: (nodeId: string, evidence: NewEvidence) => void = () => {},
): Promise<{ readonly outcome: LocalOutcome; readonly leaves: Redactor }> {
  let leaves = makeRedactor([]);
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(new RunStopped("timeout")), asked.blueprint.timeoutMs);
  const { signal } = stop;
  await using opened = new AsyncDisposableStack();
  opened.defer(async () => clearTimeout(timer));
  try {
    const plan = planKept(asked.blueprint);
    const loggedIn = await openTargets(services, asked, opened, signal);
    leaves = loggedIn.leaves;
    await using scratch = new Scratch(services.scratchFolder, asked.id, 1);
    const results = new Map<string, NewResult>();
    const { targets, publicTarget, redact, door } = loggedIn;
    const run = localRow(asked);
    const bindings: { release(): void }[] = [];
    const warnings = new Map<string, string[]>();
    opened.defer(async () => bindings.forEach((binding) => binding.release()));
    await executeNodes(
      {
        services: { ...services, clock: systemClock, random: systemRandom },
        journal: localJournal(asked.rules),
        run,
        lease: { runId: run.id, owner: "local", epoch: run.epoch },
        plan,
        signal,
        scratch,
        redact,
        door,
        inputs: asked.inputs,
        targets,
        openTarget: publicTarget,
        bindings,
        outputs: new Map(),
        results,
        tallies: new Tallies(systemClock, 0),
        shown: { step: "running" },
        onEvidence,
        onWarning: (nodeId, message) => warnings.set(nodeId, [...(warnings.get(nodeId) ?? []), message]),
      },
      async (context, planned) => {
        const startMs = performance.now();
        const tell = async (failed: boolean): Promise<void> => {
          const output = context.outputs.get(planned.node.id) ?? null;
          const { id } = planned.node;
          const durationMs = performance.now() - startMs;
          await onNode({ planned, durationMs, output, failed, warnings: warnings.get(id) ?? [] });
        };
        services.trace?.at(planned.node.id);
        try {
          await executeNode(context, planned);
        } catch (error) {
          await tell(true);
          throw error;
        }
        await tell(false);
      },
    );
    return { outcome: { kind: "completed", results }, leaves };
  } catch (error) {
    return { outcome: outcomeOf(services, error), leaves };
  }
}

function outcomeOf({ log }: LocalServices, error: unknown): LocalOutcome {
  if (error instanceof RunParked) return { kind: "parked" };
  if (error instanceof RunFailure)
    return { kind: "failed", message: error.message, answer: error.answer, evidence: error.evidence };
  if (error instanceof RunStopped)
    return { kind: "failed", message: "The run took longer than its Blueprint's timeout.", ...NOTHING_SHOWN };
  log.error(describeError(error), "the run failed unexpectedly");
  const message = `An unexpected error (${describeError(error).error}).`;
  return { kind: "failed", message, ...NOTHING_SHOWN };
}

const NOTHING_SHOWN = { answer: null, evidence: null } as const;

/** As in the service, except that the records of streaming nodes are kept too. */
function planKept(blueprint: Blueprint): RunPlan {
  const plan = planOnce(blueprint);
  return { ...plan, nodes: plan.nodes.map((planned) => ({ ...planned, kept: true })) };
}

/** The run in the form of its row. */
function localRow({ id, key, blueprint, inputs, metadata }: LocalRun): ClaimedRun {
  return {
    id,
    runKey: key,
    accountId: "acc_local",
    accountSlug: blueprint.account,
    blueprintId: "bp_local",
    blueprintVersion: 1,
    name: null,
    metadata: Buffer.from(JSON.stringify(metadata), "utf8"),
    status: "running",
    progressStep: "running",
    epoch: 1,
    lostLeases: 0,
    remainingMs: blueprint.timeoutMs,
    claimedAtMs: 0,
    line: null,
    hasInputs: inputs.size > 0,
    credentials: [],
  };
}

interface OpenTargets {
  readonly targets: ReadonlyMap<string, TargetSession>;
  /** The target for nodes without a credential. */
  readonly publicTarget: TargetSession;
  /** As in the service: redacts secret values. */
  readonly redact: Redactor;
  readonly door: Door;
  readonly leaves: Redactor;
}

async function openTargets(
  services: LocalServices,
  asked: LocalRun,
  opened: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<OpenTargets> {
  const gate = services.gate && (services.trace?.watch(services.gate) ?? services.gate);
  const hosts = asked.blueprint.hosts.map((host) => new URL(host).origin);
  const { browsers } = services;
  if (gate === null) return replayedTargets(asked, hosts, browsers);
  const targets = new Map<string, readonly [TargetSession, readonly string[]]>();
  const secrets = openRunSecrets([], namesOf(asked.blueprint));
  const leaves = makeRedactor([]);
  const mac = handleMac();
  const tape = asked.pages === null ? undefined : recordPages(asked.pages, leaves);
  for (const { slot } of asked.blueprint.credentials) {
    const credential = must(asked.credentials.get(slot), `the credential of ${slot}`);
    const { strategy, fields } = credential;
    services.trace?.at(`login of ${slot}`);
    const loggedIn = await logInLocally({ ...services, gate, browsers }, credential, signal);
    const { session } = loggedIn;
    secrets.add(loggedIn.secrets);
    leaves.add([...secretsOfAllFields(strategy, fields), ...sessionSecrets(strategy, fields, session)]);
    const handles = openHandles(mac, { runId: asked.id, credentialId: slot });
    handles.add(loggedIn.fromTarget, loggedIn.fromEndUser);
    const door = openDoor(secrets, handles);
    const target = openTarget(
      gate,
      strategy.hosts,
      session,
      undefined,
      null,
      {
        ...door,
        learn: (cookies) => {
          door.learn(cookies);
          leaves.addPassing(cookieSecrets(cookies));
        },
      },
      { browsers, resources: resourcesOf(strategy), dismissed: dismissedIn(strategy.login), tape },
    );
    const { browser } = session.reveal();
    if (asked.pages !== null && browser !== undefined)
      asked.pages.storage[slot] = blankStorage(browser as unknown as BrowserState);
    opened.defer(async () => await target.close());
    targets.set(slot, [target, strategy.hosts]);
  }
  services.trace?.beginNodes(leaves);
  const door = openDoor(secrets, null);
  return {
    targets: new Map(
      [...targets].map(([slot, [target, origins]]) => [
        slot,
        recordTarget(target, origins, leaves, asked.exchanges),
      ]),
    ),
    publicTarget: recordTarget(
      openTarget(gate, hosts, null, undefined, null, door, { browsers, resources: [], tape }),
      hosts,
      leaves,
      asked.exchanges,
    ),
    redact: redactorOf(secrets),
    door,
    leaves,
  };
}

const NO_PAGES = "the recording has no pages: record it again with `--record`";

/** Replays don't log in: a recording has no login, and nothing is sent. */
function replayedTargets(
  { blueprint, strategies, exchanges, pages }: LocalRun,
  hosts: readonly string[],
  browsers: Browsers,
): OpenTargets {
  // One queue for all targets: method, URL and body identify a request, whichever node sends it.
  const send = replayTarget(exchanges);
  const tape = pages && replayPages(pages);
  const replayed = (
    origins: readonly string[],
    slot: string | null,
    dismissed: readonly LocatorConfig[] = [],
  ): TargetSession => {
    const jar = openJar();
    return {
      send: async (request) => await send(request, origins),
      originOf: () => null,
      jar,
      browse: async (signal, { nets, ...may }, work) => {
        if (tape === null) throw new StepFailure("browser_missing", NO_PAGES);
        const login = new Secret<LoginSession>({
          headers: {},
          cookies: null,
          extracted: { secret: [], open: [] },
          browser: (slot !== null && pages?.storage[slot]) || undefined,
        });
        const means = { browsers, origins, resources: [], dismissed, login, jar, beforeHop: null, tape };
        return await browseAs({ ...means, nets: () => nets, ...may }, signal, work);
      },
      close: async () => {},
    };
  };
  return {
    targets: new Map(
      blueprint.credentials.map(({ slot }) => {
        const { hosts: own, login } = must(strategies.get(slot), `the strategy of ${slot}`);
        return [slot, replayed(own, slot, dismissedIn(login))];
      }),
    ),
    publicTarget: replayed(hosts, null),
    redact: makeRedactor([]),
    door: openDoor(openRunSecrets([]), null),
    leaves: makeRedactor([]),
  };
}

/** Nothing of the run outlives this process. */
function handleMac(): HandleMac {
  const hmac = openHmac(randomBytes(32));
  return (parts) => hmac(JSON.stringify(parts)).toString("hex");
}
