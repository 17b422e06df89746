import { OperatorError } from "#actions/operator-error.ts";
import { decideReview } from "#actions/reviews/decide-review.ts";
import { decideDoubtfulWrite } from "#actions/reviews/decide-write.ts";
import { findStored, replayOrRun } from "#actions/replay-or-run.ts";
import { cancelRun, followCancel } from "#actions/runs/cancel-run.ts";
import { readRunResults } from "#actions/runs/read-run-results.ts";
import { purgeRunAsOperator } from "#actions/runs/purge-runs.ts";
import { findTriggeredBlueprint, triggerRun, triggerRunTogether } from "#actions/runs/trigger-run.ts";
import { StoreFailed } from "#blobs/store.ts";
import { isConnectionLost, isLockedOut } from "#db/connection/database-errors.ts";
import { listOpenReviews } from "#db/runs/reviews.ts";
import { listDoubtfulWrites } from "#db/runs/run-writes.ts";
import { findRun } from "#db/runs/runs.ts";
import { fingerprint } from "#domain/idempotency.ts";
import { Problem } from "#domain/problem.ts";
import type { TriggerBody } from "#domain/trigger-routing.ts";
import { must } from "#lib/assert.ts";
import type { SimApi } from "./processes.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { Stage } from "./stage.ts";
import { BLUEPRINTS, CREDENTIALS_OF, type AccountSlug } from "./stage-documents.ts";
import type { ScriptedTarget } from "./target.ts";
import type { World } from "./world.ts";

/** What a caller sent under one key, and what it was told. */
export interface Order {
  readonly key: string;
  readonly account: AccountSlug;
  readonly blueprint: string;
  readonly numbers: readonly string[];
  /** Ids of the runs that were acknowledged, one for each 202 that was heard. */
  readonly acknowledged: string[];
}

/** Whose order, and of what. */
export interface Ordered {
  readonly account: AccountSlug;
  readonly blueprint: string;
  /** When; by chance unless given. */
  readonly atMs?: number;
}

/** As many that their refusals are more than a run's retries. */
export const STUBBORN_ROWS = 12;
const AGAIN_MS = 1_500;

/** Customers' backends and their operators. They speak with the API of whichever process is up, and try again as a client does. */
export class Customers {
  readonly world: World;
  readonly orders: Order[] = [];
  readonly #random: SeededRandom;
  readonly #apis: () => readonly SimApi[];
  readonly #target: ScriptedTarget;
  readonly #stage: Stage;

  constructor(world: World, stage: Stage, target: ScriptedTarget, apis: () => readonly SimApi[]) {
    this.world = world;
    this.#random = world.random.fork("customers");
    this.#stage = stage;
    this.#target = target;
    this.#apis = apis;
  }

  /** One order, sent once or more often, and again until it is acknowledged. `of`: account and Blueprint; null: any. */
  place(of: Ordered | null): void {
    const random = this.#random;
    const [account, blueprint] = of ? [of.account, of.blueprint] : anyOrder(random);
    const order: Order = {
      key: `order-${this.orders.length}`,
      account,
      blueprint,
      numbers: Array.from(
        { length: blueprint === "stubborn" ? STUBBORN_ROWS : random.integer(1, 4) },
        (_, index) => `n${index}`,
      ),
      acknowledged: [],
    };
    this.orders.push(order);
    this.#send(order);
    // A customer whose proxy repeats a request sends it to another process at the same time.
    if (random.isHit(0.3)) this.world.after(random.between(0, 30), "a duplicate", () => this.#send(order));
    // One that sends before it has an answer uses one connection.
    else if (random.isHit(0.15)) this.#send(order, 3);
  }

  #send(order: Order, times = 1): void {
    const apis = this.#apis();
    if (apis.length === 0) return this.#again(order);
    const api = this.#random.pick(apis);
    for (let time = 0; time < times; time++) this.#sendTo(api, order);
  }

  #sendTo(api: SimApi, order: Order): void {
    let isAnswered = false;
    // A process that crashes answers nobody.
    const callOff = this.world.after(20_000, "no answer", () => {
      isAnswered = true;
      this.#again(order);
    });
    void api.self
      .run(async () => await this.#trigger(api, order))
      .then(
        (run) => {
          if (isAnswered) return;
          callOff();
          order.acknowledged.push(run);
          this.world.tell("customer", `${order.key} (${order.blueprint}) is ${run}, says ${api.self.name}`);
        },
        (error: unknown) => {
          if (isAnswered) return;
          callOff();
          if (!isPassing(error))
            this.world.surprises.push(`${order.key} is refused by ${api.self.name}: ${String(error)}`);
          this.#again(order);
        },
      );
  }

  #again(order: Order): void {
    this.world.after(this.#random.between(AGAIN_MS / 3, AGAIN_MS), "tries again", () => this.#send(order));
  }

  /** As `POST /blueprints/{blueprintKey}/trigger` does it, after its HTTP. */
  async #trigger({ services }: SimApi, order: Order): Promise<string> {
    const caller = must(this.#stage.callers.get(order.account), "the caller");
    const accountId = caller.account.id;
    const text = JSON.stringify(order.numbers.map((number) => ({ number })));
    const names = CREDENTIALS_OF[order.blueprint] ?? [];
    const ids = names.map((name) => must(this.#stage.credentials.get(name), name)).join(",");
    const body: TriggerBody = new Map([
      names.length > 0
        ? ["credential_ids", { kind: "string", text: ids }]
        : ["rows", { kind: "json", text, isNull: false, items: null }],
      ["run_name", { kind: "string", text: order.key }],
    ]);
    const finding = findStored(services, accountId, order.key);
    finding.catch(() => {});
    const version = await findTriggeredBlueprint(services, caller, order.blueprint);
    const stored = await finding;
    const place = services.quotas.open(accountId);
    let isMade = false;
    try {
      const { answer, replayed } = await replayOrRun(
        services,
        {
          accountId,
          key: order.key,
          stored,
          fingerprint: () =>
            fingerprint("POST", ["blueprints", order.blueprint, "trigger"], {
              kind: "json",
              canonical: text,
            }),
        },
        async (tx) => await triggerRun(tx, caller, version, body, place),
        async (claim) => await triggerRunTogether(services, caller, version, body, { claim, place }),
      );
      isMade = !replayed;
      if (isMade) services.news.notifyRunnable([accountId]);
      return (JSON.parse(answer.body) as { id: string }).id;
    } finally {
      place.settle(isMade);
    }
  }

  /** Cancels an order that was acknowledged, as a caller. */
  cancel(): void {
    const sent = this.orders.filter(({ acknowledged }) => acknowledged.length > 0);
    const apis = this.#apis();
    if (sent.length === 0 || apis.length === 0) return;
    const api = this.#random.pick(apis);
    const { services } = api;
    const { account, acknowledged, key } = this.#random.pick(sent);
    const caller = must(this.#stage.callers.get(account), "the caller");
    const id = must(acknowledged[0], "a run");
    const work = async (): Promise<void> => {
      const run = await findRun(services.db, caller.account.id, { id });
      if (!run) return;
      await replayOrRun(
        services,
        { accountId: caller.account.id, key: null, fingerprint: () => Buffer.alloc(0) },
        async (tx) => await cancelRun(services, tx, caller, run),
      );
      followCancel(services, run);
      this.world.tell("customer", `has cancelled ${key}, ${id}`);
    };
    void api.self.run(work).catch((error: unknown) => this.#note(error));
  }

  /** An operator decides what waits for a person, and says of a write what the target's books say. */
  decide(): void {
    const apis = this.#apis();
    if (apis.length === 0) return;
    // Two of them may look at the same page.
    const asked = this.#random.isHit(0.3) ? apis : [this.#random.pick(apis)];
    for (const api of asked)
      void api.self.run(async () => await this.#decideAll(api)).catch((error: unknown) => this.#note(error));
  }

  /** A caller reads the results of a run: all of them, or a refusal that the interface names. */
  read(): void {
    const sent = this.orders.filter(({ acknowledged }) => acknowledged.length > 0);
    const [api] = this.#apis();
    if (sent.length > 0 && api) this.#readOf(api, this.#random.pick(sent));
  }

  #readOf(api: SimApi, { account, acknowledged, key, blueprint, numbers }: Order): void {
    const { services } = api;
    const caller = must(this.#stage.callers.get(account), "the caller");
    const work = async (): Promise<void> => {
      const run = await findRun(services.db, caller.account.id, { id: must(acknowledged[0], "a run") });
      if (!run) return;
      const text = await readRunResults(services, caller, run, "direct");
      const { results } = JSON.parse(text) as { results: { out?: { totalRecords: number } } };
      const count = results.out?.totalRecords;
      if (blueprint === "sends" && count !== numbers.length)
        this.world.surprises.push(`${key} has ${numbers.length} rows, and its results say ${count}`);
    };
    void api.self.run(work).catch((error: unknown) => this.#note(error));
  }

  async #decideAll({ db, log, services }: SimApi): Promise<void> {
    const { audit } = services.signing;
    for (const write of await listDoubtfulWrites(db, { accountIds: null, runId: null })) {
      const happened = this.#target.has(write.runId, `n${write.ordinal}`);
      const isDecided = await decideDoubtfulWrite({ db, log, audit }, write, { happened, by: "operator" });
      if (isDecided)
        this.world.tell(
          "operator",
          `says that n${write.ordinal} of ${write.runId} ${happened ? "" : "never "}happened`,
        );
    }
    for (const { id, runId } of await listOpenReviews(db, { accountIds: null, runId: null })) {
      const isApproved = this.#random.isHit(0.8);
      const decision = isApproved
        ? ({ verdict: "approve", changes: { edits: [], exclusions: [] } } as const)
        : ({ verdict: "reject" } as const);
      const outcome = await decideReview({ db, log, audit }, id, decision, {
        actor: { kind: "cli" },
        by: "operator",
        reason: null,
      });
      if (outcome.kind === "decided")
        this.world.tell("operator", `${isApproved ? "approves" : "rejects"} the review of ${runId}`);
    }
  }

  #note(error: unknown): void {
    if (!isExpected(error))
      this.world.surprises.push(error instanceof Error ? String(error.stack) : String(error));
  }

  /** An operator deletes the data of a run that has ended. */
  purge(): void {
    const sent = this.orders.filter(({ acknowledged }) => acknowledged.length > 0);
    const [api] = this.#apis();
    if (sent.length === 0 || api === undefined) return;
    const order = this.#random.pick(sent);
    const id = must(order.acknowledged[0], "a run");
    const { db, blobs, signing } = api.services;
    this.world.after(this.#random.between(0, 20), "a reader", () => this.#readOf(api, order));
    void api.self
      .run(async () => await purgeRunAsOperator({ db, blobs, signing }, id))
      .then(
        () => this.world.tell("operator", `has deleted the data of ${id}`),
        (error: unknown) => {
          if (!(error instanceof OperatorError)) this.#note(error);
        },
      );
  }
}

/** Blueprints that no fault makes end in another way. */
function anyOrder(random: SeededRandom): readonly [AccountSlug, string] {
  const account = random.pick([
    "acme",
    "acme",
    "acme",
    "acme",
    "acme",
    "neighbour",
    "vendor",
    "partner",
  ] as const);
  return [account, account === "vendor" ? "portal" : random.pick<string>(BLUEPRINTS[account])];
}

/** What a client tries again: the connection broke, a lock took too long, another request with the key is under way. */
const isPassing = (error: unknown): boolean =>
  isConnectionLost(error) || isLockedOut(error) || (error instanceof Problem && error.status === 409);

/** What a caller or an operator is told, as it is meant. */
const isExpected = (error: unknown): boolean =>
  isPassing(error) || error instanceof Problem || error instanceof StoreFailed;
