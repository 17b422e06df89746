// docs/decisions/0010: whatever a caller does with its keys, the service answers as a map from key to first request says.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import fc from "fast-check";
import { openCaller, type ApiAnswer, type Caller } from "../caller.ts";
import type { RunningService } from "../service.ts";
import { installIdle, moveHours, plantCredentials } from "./fixture.ts";
import { multipart } from "./multipart.ts";

const SEED = 20_261_121;
const SEQUENCES = 60;
const COMMANDS_MAX = 14;
const WINDOW_HOURS = 24;
const KEYS = 3;

/** What a caller wants; two of the same kind and content are the same request, however they are written. */
type Wish =
  | { readonly kind: "session" | "json" | "form"; readonly text: string; readonly secured: boolean }
  | { readonly kind: "delete"; readonly which: number };

interface Entry {
  readonly wish: Wish;
  readonly first: ApiAnswer;
  readonly atHours: number;
}

interface Model {
  hours: number;
  readonly entries: Map<number, Entry>;
  readonly deleted: Set<number>;
  made: number;
}

interface Real {
  readonly label: string;
  readonly credentials: readonly string[];
}

let installation: Awaited<ReturnType<typeof installIdle>>;
let service: RunningService;
let caller: Caller;
/** Over all sequences: the clock never goes back. */
let clockHours = 0;
/** What the sequences have seen, so that none of it is an accident. */
const seen = { fresh: 0, replay: 0, reuse: 0, refused: 0, outdated: 0, permuted: 0, rebound: 0 };

before(async () => {
  installation = await installIdle();
  service = await installation.serve({}, ["api"]);
  caller = openCaller(service.url, await installation.createKey("acme"));
});
after(() => installation?.[Symbol.asyncDispose]());

/** `variant` changes how the request is written, and nothing that it means. */
async function send(real: Real, slot: number, wish: Wish, variant: boolean): Promise<ApiAnswer> {
  const headers = { "Idempotency-Key": `${real.label}-${slot}` };
  if (wish.kind === "delete")
    return await caller.delete(`/credentials/${real.credentials[wish.which]}`, headers);
  const path =
    wish.kind === "session"
      ? "/credential-sessions"
      : `/blueprints/${wish.secured ? "secured" : "plain"}/trigger`;
  const members: [string, string][] = [
    [wish.kind === "session" ? "name" : "run_name", real.label],
    [wish.kind === "session" ? "ignored" : "b", wish.text],
  ];
  if (wish.kind === "session") members.push(["strategy_id", "strat_acme"]);
  else if (wish.secured) members.push(["credential_id", real.credentials[0] ?? ""]);
  if (wish.kind === "form") {
    const parts = members.map(([name, content]) => ({ name, content }));
    const form = multipart(
      variant ? "another-boundary" : "boundary",
      variant ? parts.toReversed() : parts,
      variant ? "preamble\r\n" : "",
    );
    return await caller.post(path, form.body, { ...headers, "content-type": form.type });
  }
  const write = (text: string): string =>
    variant
      ? `"${Array.from(text, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")}"`
      : JSON.stringify(text);
  const texts = members.map(
    ([name, value]) => `${JSON.stringify(name)}${variant ? " : " : ":"}${write(value)}`,
  );
  return await caller.post(
    path,
    `{${(variant ? texts.toReversed() : texts).join(variant ? " ,\n" : ",")}}`,
    headers,
  );
}

const STATUS = { session: 201, json: 202, form: 202, delete: 204 } as const;
const sameWish = (one: Wish, other: Wish): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Checks one answer against the model, and lets the model learn from it. */
function judge(model: Model, slot: number, wish: Wish, answer: ApiAnswer): void {
  const entry = model.entries.get(slot);
  const replayed = answer.headers.get("idempotent-replay");
  if (entry && model.hours - entry.atHours < WINDOW_HOURS) {
    if (sameWish(entry.wish, wish)) {
      seen.replay++;
      assert.equal(replayed, "true");
      assert.equal(answer.status, entry.first.status);
      assert.equal(answer.text, entry.first.text);
    } else {
      seen.reuse++;
      assert.equal(replayed, null);
      assert.equal(answer.status, 409);
      assert.equal(answer.body.error.details[0].code, "idempotency_key_reuse");
    }
    return;
  }
  assert.equal(replayed, null);
  const gone = wish.kind === "delete" ? model.deleted.has(wish.which) : wish.secured && model.deleted.has(0);
  if (gone) {
    seen.refused++;
    assert.equal(answer.status, wish.kind === "delete" ? 404 : 422);
    return;
  }
  if (entry) seen.outdated++;
  seen.fresh++;
  assert.equal(answer.status, STATUS[wish.kind], answer.text);
  model.entries.set(slot, { wish, first: answer, atHours: model.hours });
  if (wish.kind === "delete") model.deleted.add(wish.which);
  else model.made++;
}

type Command = fc.AsyncCommand<Model, Real>;
const slots = fc.integer({ min: 0, max: KEYS - 1 });
const wishes: fc.Arbitrary<Wish> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .record({
        kind: fc.constantFrom("session", "json", "form"),
        text: fc.constantFrom("one", "two"),
        secured: fc.boolean(),
      })
      .map((wish) => ({ ...wish, secured: wish.secured && wish.kind !== "session" })),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("delete" as const), which: fc.constantFrom(0, 1) }) },
);

const sendCommand = (slot: number, wish: Wish): Command => ({
  check: () => true,
  run: async (model, real) => judge(model, slot, wish, await send(real, slot, wish, false)),
  toString: () => `send(${slot}, ${JSON.stringify(wish)})`,
});

/** The same request once more; `variant`: its JSON permuted and escaped, its multipart with another boundary and order. */
const duplicate = (slot: number, variant: boolean): Command => ({
  check: (model) => model.entries.has(slot),
  run: async (model, real) => {
    const wish = model.entries.get(slot)?.wish;
    assert.ok(wish);
    if (variant && (wish.kind === "session" || wish.kind === "json")) seen.permuted++;
    if (variant && wish.kind === "form") seen.rebound++;
    judge(model, slot, wish, await send(real, slot, wish, variant));
  },
  toString: () => `duplicate(${slot}${variant ? ", written otherwise" : ""})`,
});

/** Three at once: one is the first, the others are its replays. */
const atOnce = (slot: number, wish: Wish): Command => ({
  check: () => true,
  run: async (model, real) => {
    const answers = await Promise.all([0, 1, 2].map(async () => await send(real, slot, wish, false)));
    const [first, ...others] = answers.toSorted(
      (a, b) => Number(a.headers.has("idempotent-replay")) - Number(b.headers.has("idempotent-replay")),
    );
    assert.ok(first);
    for (const answer of [first, ...others]) judge(model, slot, wish, answer);
  },
  toString: () => `three at once(${slot}, ${JSON.stringify(wish)})`,
});

const mutate = (slot: number): Command => ({
  check: (model) => model.entries.has(slot),
  run: async (model, real) => {
    const wish = model.entries.get(slot)?.wish;
    assert.ok(wish);
    const other: Wish =
      wish.kind === "delete" ? { kind: "delete", which: 1 - wish.which } : { ...wish, text: `${wish.text} ` };
    judge(model, slot, other, await send(real, slot, other, false));
  },
  toString: () => `mutate(${slot})`,
});

const deleteCredential = (which: number): Command => ({
  check: (model) => !model.deleted.has(which),
  run: async (model, real) => {
    assert.equal((await caller.delete(`/credentials/${real.credentials[which]}`)).status, 204);
    model.deleted.add(which);
  },
  toString: () => `delete credential ${which}`,
});

const advance = (hours: number): Command => ({
  check: () => true,
  run: async (model) => {
    clockHours += hours;
    model.hours += hours;
    await moveHours(installation, clockHours);
  },
  toString: () => `advance ${hours} h`,
});

const commands = fc.commands(
  [
    fc.tuple(slots, wishes).map(([slot, wish]) => sendCommand(slot, wish)),
    fc.tuple(slots, fc.boolean()).map(([slot, variant]) => duplicate(slot, variant)),
    slots.map((slot) => duplicate(slot, true)),
    fc.tuple(slots, wishes).map(([slot, wish]) => atOnce(slot, wish)),
    slots.map(mutate),
    fc.constantFrom(0, 1).map(deleteCredential),
    // 23 h and then 1 h are the limit exactly.
    fc.constantFrom(1, 1, 23, 24).map(advance),
  ],
  { maxCommands: COMMANDS_MAX, size: "max" },
);

test(`${SEQUENCES} random sequences of sends, duplicates, rewritten and changed bodies, deletions and hours agree with the model`, async () => {
  const credentials = await plantCredentials(installation, 2 * 4 * SEQUENCES);
  let sequence = 0;
  await fc.assert(
    fc.asyncProperty(commands, async (sequenceCommands) => {
      const label = `model-${sequence}`;
      const real = { label, credentials: credentials.slice(2 * sequence, 2 * sequence + 2) };
      sequence++;
      const model: Model = { hours: 0, entries: new Map(), deleted: new Set(), made: 0 };
      await fc.asyncModelRun(() => ({ model, real }), sequenceCommands);
      const made = await installation.database.db.query(
        `select id from run where name = convert_to($1, 'UTF8') union all select id from credential_session where name = $1`,
        [label],
      );
      assert.equal(made.length, model.made, "as many rows as first answers");
    }),
    {
      seed: SEED,
      numRuns: SEQUENCES,
      endOnFailure: false,
    },
  );
  assert.ok(
    Object.values(seen).every((count) => count >= 5),
    `each kind of answer was met: ${JSON.stringify(seen)}`,
  );
});
