// Streams of run events are counted by key, by account and in all: one account with many keys does not take them all.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RunWatch } from "#actions/runs/watch-runs.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunNotifier } from "#db/runs/run-notifier.ts";
import type { VisibleRun } from "#db/runs/runs.ts";
import { Problem } from "#domain/problem.ts";
import { openLog } from "#lib/log.ts";

test("a quota that is met is named, and what is closed counts no more", () => {
  // A place is taken before anything is read.
  const [db, news, run] = [null, null, null].map((nothing) => nothing as unknown) as [
    Database,
    RunNotifier,
    VisibleRun,
  ];
  const log = openLog({ level: "error", format: "json" }, { write: () => undefined });
  const watch = new RunWatch(db, news, log, { perKey: 2, perAccount: 3, inAll: 4 });
  const open = (keyId: string, accountId: string): AbortController => {
    const gone = new AbortController();
    watch.watch(run, { keyId, accountId }, 0, gone.signal);
    return gone;
  };
  const refused = (keyId: string, accountId: string, quota: RegExp): void => {
    assert.throws(
      () => open(keyId, accountId),
      (error) => error instanceof Problem && error.status === 429 && quota.test(error.message),
    );
  };
  const first = open("key_a", "acme");
  open("key_a", "acme");
  refused("key_a", "acme", /of this API key \(2\) are open/);
  open("key_b", "acme");
  refused("key_c", "acme", /of the account \(3\) are open/);
  open("key_d", "globex");
  refused("key_d", "globex", /of this process \(4\) are open/);
  first.abort();
  first.abort();
  open("key_c", "acme");
  refused("key_c", "acme", /of the account \(3\) are open/);
});
