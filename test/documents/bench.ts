import { connect, openCaller, type ApiAnswer, type Caller } from "../caller.ts";
import { PATIENCE_MS } from "../eventually.ts";
import { install, type Installation, type RunningService } from "../service.ts";
import { openTarget, type Target } from "./target.ts";

/** A record of the results. Spec, Run results. */
export interface ResultRecord {
  readonly data: any;
  readonly errors: readonly {
    readonly field: string | null;
    readonly code: string;
    readonly message: string;
  }[];
  readonly isValid: boolean;
}

/** A run that has ended, as its caller and its operator see it. */
export interface EndedRun {
  readonly id: string;
  /** The last status projection. */
  readonly status: any;
  readonly steps: readonly string[];
  /** By result key; empty unless it completed. */
  readonly results: Readonly<
    Record<string, { readonly totalRecords: number; readonly records: readonly ResultRecord[] }>
  >;
  /** The whole results answer. */
  readonly answer: any;
  /** The operator's story of a failure. */
  readonly detail: string | null;
  readonly kind: string | null;
}

/** A whole installation with a target of its own, and an account `acme` with a key. */
export interface Bench extends AsyncDisposable {
  readonly installation: Installation;
  readonly service: RunningService;
  readonly target: Target;
  readonly caller: Caller;
  readonly key: string;
  /** As `latchkey apply`; throws when a document is refused. */
  apply(...documents: string[]): Promise<void>;
  /** A credential of a strategy, through the hosted form. */
  connect(strategyId: string, values: Readonly<Record<string, string>>): Promise<string>;
  trigger(blueprint: string, body?: unknown, headers?: Record<string, string>): Promise<ApiAnswer>;
  /** Triggers, waits for the end and reads the results. */
  run(blueprint: string, body?: unknown): Promise<EndedRun>;
  /** Waits for a run that was triggered already. */
  ended(runId: string): Promise<EndedRun>;
  /** What `latchkey apply` says against documents, without file names; empty when it takes them. */
  refusals(...documents: string[]): Promise<readonly string[]>;
}

/** `documents` may hold `{TARGET}` for the target's origin. They are applied together with the account. */
export async function openBench(
  documents: readonly string[],
  account = "account: acme\nname: Acme",
  environment: Readonly<Record<string, string>> = {},
): Promise<Bench> {
  await using opened = new AsyncDisposableStack();
  const target = opened.use(await openTarget());
  const installation = opened.use(await install({ ...environment }));
  const written = (texts: readonly string[]): string[] =>
    texts.map((text) => text.replaceAll("{TARGET}", target.url));
  await installation.apply(account, ...written(documents));
  const [key, service] = await Promise.all([installation.createKey("acme"), installation.serve()]);
  const caller = openCaller(service.url, key);
  const ended = async (runId: string): Promise<EndedRun> => await readEnded(installation, caller, runId);
  const trigger: Bench["trigger"] = async (blueprint, body, headers) =>
    await caller.post(`/blueprints/${blueprint}/trigger`, body ?? {}, headers);
  const kept = opened.move();
  return {
    installation,
    service,
    target,
    caller,
    key,
    apply: async (...texts) => await installation.apply(...written(texts)),
    connect: async (strategyId, values) => await connect(caller, strategyId, values),
    trigger,
    run: async (blueprint, body) => {
      const { status, text, body: accepted } = await trigger(blueprint, body);
      if (status !== 202) throw new Error(`the trigger of ${blueprint} answered ${status}: ${text}`);
      return await ended(accepted.id);
    },
    ended,
    refusals: async (...texts) => await installation.refusals(...written(texts)),
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

async function readEnded(installation: Installation, caller: Caller, runId: string): Promise<EndedRun> {
  const { body: status, steps } = await caller.waitForRun(runId, PATIENCE_MS);
  const rows = await installation.database.db.query<{ detail: string | null; kind: string | null }>(
    `select error_detail as detail, error_kind as kind from run where id = $1`,
    [runId],
  );
  const { detail = null, kind = null } = rows[0] ?? {};
  const read =
    status.status === "completed"
      ? await caller.get(`/blueprint-runs/${runId}/results?deliveryMethod=direct`)
      : null;
  return {
    id: runId,
    status,
    steps,
    results: read?.body.results ?? {},
    answer: read?.body ?? null,
    detail,
    kind,
  };
}

/** The data of the records of a result key. */
export function dataOf(run: EndedRun, key = "out"): readonly any[] {
  const result = run.results[key];
  if (!result)
    throw new Error(`the run has no result ${key}: ${run.detail ?? Object.keys(run.results).join(", ")}`);
  return result.records.map((record) => record.data);
}

/** A Blueprint of the account: its nodes as YAML list items without indentation. */
export function blueprint(key: string, nodes: string, more = ""): string {
  return `blueprint: ${key}\naccount: acme\n${more}\nnodes:\n${nodes.replaceAll(/^/gm, "  ")}`;
}
