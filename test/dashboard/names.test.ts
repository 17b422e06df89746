// What the dashboard makes of technical texts: a browser's header, and the keys of documents.
import assert from "node:assert/strict";
import { test } from "node:test";
import { credentialLabel } from "../../ui/pages/credential-label.ts";
import { browserName } from "../../ui/parts/browser-name.ts";
import { rateOf } from "../../ui/parts/success-rate.ts";
import { wordsOf } from "../../ui/parts/words-of.ts";

const BROWSERS = [
  ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
    "Edge on Windows",
  ],
  [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Safari/605.1.15",
    "Safari on macOS",
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1",
    "Safari on iOS",
  ],
  [
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
    "Chrome on Android",
  ],
  ["curl/8.9.1", "curl/8.9.1"],
  ["", "Unknown browser"],
] as const;

test("a session is listed with the name of its browser and system; an unknown one says what it is", () => {
  for (const [header, name] of BROWSERS) assert.equal(browserName(header), name);
});

test("keys of documents are read as words", () => {
  assert.equal(wordsOf("purchase_order"), "Purchase order");
  assert.equal(wordsOf("purchaseOrder"), "Purchase order");
  assert.equal(wordsOf("customer-id"), "Customer ID");
});

test("a success rate counts runs that ended by themselves, and is 100 % only if none failed", () => {
  assert.equal(rateOf({ completed: 2_499, failed: 1 }), "99.9 %");
  assert.equal(rateOf({ completed: 20, failed: 0 }), "100 %");
  assert.equal(rateOf({ completed: 0, failed: 0 }), "–");
});

test("credentials with one label are told apart by their ids", () => {
  const [first, second, other] = [
    { id: "cred_0123456789abcdefghij", name: "Portal" },
    { id: "cred_0123456789abcdefghik", name: "Portal" },
    { id: "cred_0123456789abcdefghil", name: "Shop" },
  ] as const;
  const labels = [first, second, other].map((each) => credentialLabel(each, [first, second, other]));
  assert.equal(new Set(labels).size, 3);
  assert.deepEqual([labels[0]?.startsWith("Portal ("), labels[2]], [true, "Shop"]);
});
