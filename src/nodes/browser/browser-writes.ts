import { whichHolds, type StepsMeans } from "#answers/browser/run-steps.ts";
import { StepFailure } from "#answers/browser/step-failure.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { NodeFailure, type NodeContext } from "#nodes/define-node.ts";
import { settleKnown, settleWrite, type UncertainWrite, type Written } from "#nodes/settle-write.ts";
import { hasCommit, type BrowserConfig } from "./browser-config.ts";
import { mayRepeat } from "./browser-reads.ts";
import { doSteps, logFailure, nodeFailure } from "./do-steps.ts";

/** A node writes once. */
const ORDINAL = 0;

/**
 * Does the steps of a node that writes. The intent is committed at `commit`: up to there a failure is that of a read, and the steps may
 * be done again; from there on they are only done again if a look-up says that nothing has happened. Throws NodeFailure.
 */
export async function writeByPages(
  context: NodeContext,
  config: BrowserConfig,
): Promise<readonly JsonObject[]> {
  const written = await writeOnce(context, config);
  return written === "in_doubt" ? context.writes.askOperator() : recordsOf(written.gave);
}

const recordsOf = (gave: Json): readonly JsonObject[] =>
  Array.isArray(gave) ? (gave as readonly Json[]).filter(isJsonObject) : [];

async function writeOnce(context: NodeContext, config: BrowserConfig): Promise<Written> {
  const { verify } = config;
  const write: UncertainWrite = {
    ordinal: ORDINAL,
    place: "the write of the steps",
    // What the steps would have read is not known.
    whenFound: [],
    lookUp: verify === undefined ? null : async () => await isThere(context, config, verify),
    onUnknown: config.on_unknown,
  };
  const known = (await context.writes.known(ORDINAL, 1)).get(ORDINAL);
  const lost = { why: "the worker was lost while the steps after the commit were done", request: nothing };
  const before = await settleKnown(context, write, known, lost);
  if (before !== "not_there") return before;
  for (let attempt = 1; ; attempt++) {
    const ended = await attemptWrite(context, config);
    if (ended.kind === "done") {
      await context.writes.finish(ORDINAL, ended.records);
      return { gave: ended.records };
    }
    if (ended.kind === "too_late") {
      // There is no time left for a look-up.
      const settled = await settleWrite(
        context,
        { ...write, lookUp: null },
        { why: ended.why, request: null },
      );
      if (settled !== "not_there") return settled;
      continue;
    }
    const { error, hasCommitted } = ended;
    logFailure(context, error, attempt);
    if (hasCommitted && error.code === "rejected") {
      await context.writes.refuse(ORDINAL);
      throw await nodeFailure(context, error, attempt);
    }
    if (hasCommitted) {
      if (error.evidence !== null) await context.keepEvidence(error.evidence);
      const settled = await settleWrite(context, write, { why: error.message, request: null });
      if (settled !== "not_there") return settled;
    }
    if (await mayRepeat(context, error, attempt)) continue;
    if (!hasCommitted) throw await nodeFailure(context, error, attempt);
    throw new NodeFailure(`${error.message}; a look-up did not find the write.`);
  }
}

const nothing = async (): Promise<null> => null;

type Attempt =
  | { readonly kind: "done"; readonly records: readonly JsonObject[] & Json }
  | { readonly kind: "failed"; readonly error: StepFailure; readonly hasCommitted: boolean }
  /** The node's time was over after the commit. */
  | { readonly kind: "too_late"; readonly why: string };

async function attemptWrite(context: NodeContext, config: BrowserConfig): Promise<Attempt> {
  let hasCommitted = false;
  const commit = async (): Promise<void> => {
    await context.writes.commit(ORDINAL);
    hasCommitted = true;
  };
  try {
    const output = await context.browse(async (browser) => {
      if (!hasCommit(config.steps)) await commit();
      const begin = (): void => {
        if (hasCommitted) context.writes.goOn();
      };
      return await doSteps(context, browser, config, { commit, begin }).catch((error: unknown) => {
        throw hasCommitted ? notExpired(error) : error;
      });
    });
    const { records } = output;
    return { kind: "done", records: records as readonly JsonObject[] & Json };
  } catch (error) {
    if (error instanceof StepFailure) return { kind: "failed", error, hasCommitted };
    // Only the node's own time limit has this kind of reason. A run that is stopped has another.
    if (hasCommitted && error instanceof DOMException && error.name === "TimeoutError")
      return { kind: "too_late", why: "the node took longer than its timeout" };
    if (hasCommitted && error instanceof NodeFailure)
      return { kind: "failed", error: new StepFailure("unexpected", error.message), hasCommitted };
    throw error;
  }
}

/** A session that has ended is renewed, and the steps begin again: not after the commit. */
const notExpired = (error: unknown): unknown =>
  error instanceof StepFailure && error.code === "expired"
    ? new StepFailure("unexpected", error.message, error.path, error.evidence)
    : error;

/** `verify`: whether the write is there. Throws NodeFailure if the page does not say, because a write that is missing is done again. */
async function isThere(
  context: NodeContext,
  { evidence }: Pick<BrowserConfig, "evidence">,
  { steps, found, missing }: NonNullable<BrowserConfig["verify"]>,
): Promise<boolean> {
  try {
    return await context.browse(async (browser) => {
      let met = -1;
      const after = async (means: StepsMeans): Promise<void> => {
        met = await whichHolds(means, [found, missing]);
      };
      const looked = { steps, evidence: evidence === "off" ? ("off" as const) : ("on_failure" as const) };
      await doSteps(context, browser, looked, { after, root: ["verify", "steps"] });
      if (met < 0) throw new NodeFailure("verify: the page shows neither `found` nor `missing`.");
      return met === 0;
    });
  } catch (error) {
    if (!(error instanceof StepFailure)) throw error;
    const failure = await nodeFailure(context, error, 1);
    const place = error.path.length === 0 ? "verify: " : "";
    throw new NodeFailure(`${place}${failure.message}`, failure.kind === null ? {} : { kind: failure.kind });
  }
}
