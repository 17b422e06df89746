// An audit entry's detail is shown as fields: names as words, values as people read them, ids as they are.
import assert from "node:assert/strict";
import { test } from "node:test";
import { readDetail } from "../../ui/pages/audit-detail.ts";

test("names become words; durations, numbers and truth are readable; ids and addresses stay as they are", () => {
  const shown = readDetail({
    second_factor: "recovery_code",
    lifetime_ms: 7_776_000_000,
    rows: 1_234_567,
    after_restore: true,
    kid: "k2",
    session: "ses_0VrJqTqN5",
    strategy: "strat_portal",
    row: "operator/op_1",
    serial: 7,
    origin: "https://app.acme.example",
    proposal: null,
    oauth_tokens: 0,
    origins: ["https://a.example"],
  });
  assert.deepEqual(
    shown.map(({ name, text }) => `${name}: ${text}`),
    [
      "Second factor: recovery code",
      "Lifetime: 90d",
      "Rows: 1,234,567",
      "After restore: yes",
      "Master key: k2",
      "Session: ses_0VrJqTqN5",
      "Strategy: strat_portal",
      "Origin: https://app.acme.example",
      "OAuth tokens: 0",
      'Origins: ["https://a.example"]',
    ],
  );
  assert.deepEqual(readDetail(null), []);
});
