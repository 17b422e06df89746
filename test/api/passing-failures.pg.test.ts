// docs/decisions/0011: 503 with Retry-After and type internal_error for what passes; 500 for what does not.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isPassingFailure } from "#actions/passing-failure.ts";
import { isConnectionLost } from "#db/connection/database-errors.ts";
import { openCaller, type Caller } from "../caller.ts";
import { install, type Installation } from "../service.ts";

let installation: Installation & AsyncDisposable;
let caller: Caller;
before(async () => {
  installation = await install();
  await installation.apply(
    "account: acme\nname: Acme",
    "strategy: strat_notes\naccount: acme\nname: Notes\nfields: [{ key: note, label: Note, type: text }]\nlogin: { type: none }",
  );
  caller = openCaller((await installation.serve({}, ["api"])).url, await installation.createKey("acme"));
});
after(async () => await installation?.[Symbol.asyncDispose]());

const PASSING = [
  ...["08000", "08003", "08006", "53000", "53100", "53200", "53300", "57P01", "57P02", "57P03"],
  ...["55000", "55P03", "57014", "25006", "25P03", "40001", "40P01"],
];
const LASTING = ["42P01", "23505", "22P02", "P0001", "XX000", "28P01", "55006", "57000"];

/** The database refuses every new session with this SQLSTATE. */
async function refuseWith(code: string): Promise<void> {
  await installation.database.db.query(
    `create or replace function refuse() returns trigger language plpgsql
     as $$ begin raise exception 'a secret of the database' using errcode = '${code}'; end $$;
     create or replace trigger refuse before insert on credential_session execute function refuse()`,
  );
}

for (const [status, codes] of [
  [503, PASSING],
  [500, LASTING],
] as const) {
  test(`${status} for a database that refuses with ${codes.join(", ")}`, async () => {
    for (const code of codes) {
      await refuseWith(code);
      const answer = await caller.post("/credential-sessions", { strategy_id: "strat_notes" });
      assert.equal(answer.status, status, code);
      assert.equal(answer.headers.get("retry-after"), status === 503 ? "1" : null, code);
      assert.equal(answer.body.error.type, "internal_error");
      assert.equal(answer.text.includes("secret"), false);
    }
  });
}

test("errors of the connection pass, those of files and of ourselves don't", () => {
  const error = (fields: object, message = "x"): Error => Object.assign(new Error(message), fields);
  const passing = [
    ...[
      "ECONNREFUSED",
      "ECONNRESET",
      "EPIPE",
      "ETIMEDOUT",
      "EHOSTUNREACH",
      "ENETUNREACH",
      "ENOTFOUND",
      "EAI_AGAIN",
    ].map((code) => error({ code, syscall: "connect" })),
    error({ code: "ENOENT", syscall: "connect" }),
    error({}, "Connection terminated unexpectedly"),
    error({}, "timeout exceeded when trying to connect"),
    error({}, "Query read timeout"),
    error({}, "The database connection broke earlier in this transaction"),
  ];
  const lasting = [
    error({ code: "ENOENT", syscall: "open" }),
    error({ code: "ENOSPC", syscall: "write" }),
    error({ code: "ERR_INVALID_ARG_TYPE" }),
    error({}, "a Connection terminated"),
    "Connection terminated",
    null,
  ];
  for (const each of passing) {
    assert.ok(isPassingFailure(each), String(each));
    assert.ok(isConnectionLost(each), "the pool says the same of the connection");
  }
  for (const each of lasting) assert.equal(isPassingFailure(each), false, String(each));
});
