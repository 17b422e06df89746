import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { limits } from "#domain/limits.ts";
import { appendSessionId, canonicalOrigin, checkReturnUrl } from "#domain/return-url.ts";
import { CONFUSIONS } from "./return-url-corpus.ts";
import { DIFFERENTIALS } from "./return-url-differentials.ts";

const REFUSED = { ...CONFUSIONS, ...DIFFERENTIALS };

const ALLOWED = [
  "https://app.example.com",
  "https://app.example.com:8443",
  "http://localhost:3000",
  "http://127.0.0.1",
  "https://xn--mnchen-3ya.example",
  "https://xn--strae-oqa.example",
  "https://[2001:db8::1]",
];

const LEGITIMATE = [
  "https://app.example.com",
  "https://app.example.com/",
  "https://app.example.com/connect/done",
  "https://app.example.com/connect/done/",
  "https://app.example.com?from=latchkey",
  "https://app.example.com#done",
  "https://app.example.com/?",
  "https://app.example.com/#",
  "https://app.example.com/?a=1&b=2#c",
  "https://app.example.com/?a=1&a=2",
  "https://app.example.com/?session_id=old",
  "https://app.example.com/?next=https%3A%2F%2Fevil.example%2F",
  "https://app.example.com/?next=https://evil.example/",
  "https://app.example.com/?mail=a@example.com",
  "https://app.example.com/@amelia",
  "https://app.example.com/#@evil.example",
  "https://app.example.com/users/a@b.example",
  "https://app.example.com/a;b=c,d/e:f",
  "https://app.example.com/caf%C3%A9",
  "https://app.example.com/café?tür=ö",
  "https://app.example.com/%2F%2Fevil.example",
  "https://app.example.com/%5C",
  "https://app.example.com/a//b",
  "https://app.example.com/../up",
  "https://app.example.com/?q='\"<>`{}|^",
  "https://app.example.com/🔑",
  "https://app.example.com:443/default",
  "https://app.example.com:0443/zero",
  "https://app.example.com:/empty-port",
  "https://APP.EXAMPLE.com/Case",
  "HTTPS://app.example.com/scheme",
  "hTTps://App.Example.Com:443",
  "https://app.example.com:8443/port",
  "http://localhost:3000/callback",
  "http://LOCALHOST:3000",
  "http://127.0.0.1/",
  "http://127.0.0.1:80/",
  "https://xn--mnchen-3ya.example/",
  "https://XN--MNCHEN-3YA.example/",
  "https://münchen.example/grüße",
  "https://MÜNCHEN.example/",
  "https://mu\u0308nchen.example/decomposed",
  "https://straße.example/",
  "https://[2001:db8::1]/",
  "https://[2001:DB8:0:0::1]:443/",
  "https://[2001:0db8:0000:0000:0000:0000:0000:0001]/",
  `https://app.example.com/${"a".repeat(limits.returnUrlCharactersMax - "https://app.example.com/".length)}`,
];

suite("legitimate return URLs are accepted", () => {
  for (const url of LEGITIMATE) {
    test(url.slice(0, 80), () => assert.deepEqual(checkReturnUrl(url, ALLOWED), { ok: true }));
  }
});

/** Where a whole family is refused for one reason, the reason is said. */
const SAYS: Record<string, RegExp> = {
  "a user name or password": /user name/,
  "a backslash": /backslashes/,
  "another host that looks like it": /allowlist|host/,
  "too long": /at most 2048 characters/,
};

for (const [family, urls] of Object.entries(REFUSED)) {
  suite(`refused: ${family}`, () => {
    for (const url of urls) {
      test(JSON.stringify(url.slice(0, 80)), () => {
        const checked = checkReturnUrl(url, ALLOWED);
        assert.ok(!checked.ok);
        assert.match(checked.reason, /`return_url`.*\.$/);
        assert.match(checked.reason, SAYS[family] ?? /./);
        assert.ok(!checked.reason.includes("evil"));
      });
    }
  });
}

test("300 confusions and 40 legitimate forms, each written out and no two of them one", () => {
  const refused = Object.values(REFUSED).flat();
  assert.equal(new Set(refused).size, refused.length);
  assert.ok(refused.length >= 300, String(refused.length));
  assert.equal(new Set(LEGITIMATE).size, LEGITIMATE.length);
  assert.ok(LEGITIMATE.length >= 40, String(LEGITIMATE.length));
});

test("an account without an allowlist accepts none", () => {
  assert.equal(checkReturnUrl("https://app.example.com/", []).ok, false);
});

suite("session_id stands once, last in the query, and all else stays", () => {
  const cases: readonly [from: string, to: string][] = [
    ["https://app.example.com", "https://app.example.com/?session_id=sess_1"],
    ["https://app.example.com/done", "https://app.example.com/done?session_id=sess_1"],
    ["https://app.example.com/done?", "https://app.example.com/done?session_id=sess_1"],
    ["https://app.example.com/done?a=1", "https://app.example.com/done?a=1&session_id=sess_1"],
    ["https://app.example.com/done?a=1&", "https://app.example.com/done?a=1&&session_id=sess_1"],
    ["https://app.example.com/done?&&a=1", "https://app.example.com/done?&&a=1&session_id=sess_1"],
    ["https://app.example.com/done#top", "https://app.example.com/done?session_id=sess_1#top"],
    ["https://app.example.com/done?a=1#top", "https://app.example.com/done?a=1&session_id=sess_1#top"],
    [
      "https://app.example.com/#/route?session_id=x",
      "https://app.example.com/?session_id=sess_1#/route?session_id=x",
    ],
    ["https://app.example.com/?a=1#", "https://app.example.com/?a=1&session_id=sess_1#"],
    ["https://app.example.com/?session_id=evil", "https://app.example.com/?session_id=sess_1"],
    ["https://app.example.com/?session_id", "https://app.example.com/?session_id=sess_1"],
    ["https://app.example.com/?session_id=", "https://app.example.com/?session_id=sess_1"],
    ["https://app.example.com/?session_id=a=b", "https://app.example.com/?session_id=sess_1"],
    [
      "https://app.example.com/?session_id=1&session_id=2&session_id=3",
      "https://app.example.com/?session_id=sess_1",
    ],
    [
      "https://app.example.com/?a=1&session_id=2&b=3&session_id=4",
      "https://app.example.com/?a=1&b=3&session_id=sess_1",
    ],
    ["https://app.example.com/?session%5Fid=evil&a=1", "https://app.example.com/?a=1&session_id=sess_1"],
    ["https://app.example.com/?%73ession_i%64=evil", "https://app.example.com/?session_id=sess_1"],
    [
      "https://app.example.com/?SESSION_ID=1&session_id2=2&xsession_id=3",
      "https://app.example.com/?SESSION_ID=1&session_id2=2&xsession_id=3&session_id=sess_1",
    ],
    ["https://app.example.com/?session_id[]=1", "https://app.example.com/?session_id[]=1&session_id=sess_1"],
    ["https://app.example.com/??session_id=1", "https://app.example.com/??session_id=1&session_id=sess_1"],
    ["https://app.example.com/?a=session_id=1", "https://app.example.com/?a=session_id=1&session_id=sess_1"],
    [
      "https://app.example.com/?a=%2B+%20%zz&b=?/:@",
      "https://app.example.com/?a=%2B+%20%zz&b=?/:@&session_id=sess_1",
    ],
    ["https://app.example.com/?a=ü", "https://app.example.com/?a=%C3%BC&session_id=sess_1"],
    ["HTTPS://APP.example.com:443/A", "https://app.example.com/A?session_id=sess_1"],
    ["https://münchen.example/", "https://xn--mnchen-3ya.example/?session_id=sess_1"],
  ];
  for (const [from, to] of cases) {
    test(from, () => {
      assert.ok(checkReturnUrl(from, ALLOWED).ok);
      assert.equal(appendSessionId(from, "sess_1"), to);
    });
  }
});

const piece = fc.oneof(
  fc.constantFrom(
    "https://",
    "http://",
    "https:",
    "//",
    "/",
    "\\",
    "@",
    ":",
    ".",
    "?",
    "#",
    "&",
    "=",
    "%",
    "%2e",
    "blob:",
    "\t",
    "\n",
    "\r\n",
    " ",
  ),
  fc.constantFrom(
    "app.example.com",
    "evil.example",
    "localhost:3000",
    "127.0.0.1",
    "[2001:db8::1]",
    "münchen.example",
    "ａ",
    "。",
    ":443",
    ":8443",
  ),
  fc.constantFrom("session_id", "session%5fid", "sess_0", "a=1", "%", "+"),
  fc.string({ unit: "binary", maxLength: 4 }),
);
const anyText = fc.array(piece, { maxLength: 10 }).map((parts) => parts.join(""));
const accepted = fc
  .tuple(
    fc.constantFrom("https://app.example.com", "http://localhost:3000", "https://münchen.example"),
    fc.constantFrom("", "/", "/a", "?", "/?"),
    anyText,
  )
  .map((parts) => parts.join(""))
  .filter((url) => checkReturnUrl(url, ALLOWED).ok);

suite("whatever is given", () => {
  test("what is accepted has an allowed origin, before and after session_id is appended", () => {
    fc.assert(
      fc.property(fc.oneof(anyText, accepted), (url) => {
        if (!checkReturnUrl(url, ALLOWED).ok) return;
        assert.ok(ALLOWED.includes(new URL(url).origin));
        const location = appendSessionId(url, "sess_1");
        assert.ok(ALLOWED.includes(new URL(location).origin));
        assert.equal(new URL(location).protocol.startsWith("http"), true);
        assert.match(location, /^[\x21-\x7e]+$/);
        assert.ok(location.length > limits.returnUrlCharactersMax || checkReturnUrl(location, ALLOWED).ok);
      }),
      { numRuns: 3_000 },
    );
  });

  test("the result has exactly one session_id, ours, and every other byte of path, query and fragment", () => {
    fc.assert(
      fc.property(accepted, (url) => {
        const before = new URL(url);
        const after = new URL(appendSessionId(url, "sess_1"));
        assert.deepEqual(after.searchParams.getAll("session_id"), ["sess_1"]);
        assert.equal(after.pathname, before.pathname);
        assert.equal(after.hash, before.hash);
        const others = (target: URL) => [...target.searchParams].filter(([name]) => name !== "session_id");
        assert.deepEqual(others(after), others(before));
        if (!before.searchParams.has("session_id"))
          assert.ok(after.search.startsWith(before.search === "" ? "?" : before.search));
      }),
      { numRuns: 3_000 },
    );
  });

  test("appending twice is appending once", () => {
    fc.assert(
      fc.property(accepted, (url) => {
        const once = appendSessionId(url, "sess_1");
        assert.equal(appendSessionId(appendSessionId(url, "sess_0"), "sess_1"), once);
      }),
    );
  });
});

suite("origins of an account document", () => {
  const canonical: readonly [text: string, origin: string | undefined][] = [
    ["https://app.example.com", "https://app.example.com"],
    ["https://app.example.com/", "https://app.example.com"],
    ["HTTPS://APP.example.com:443", "https://app.example.com"],
    ["http://localhost:3000", "http://localhost:3000"],
    ["http://localhost:80", "http://localhost"],
    ["https://münchen.example", "https://xn--mnchen-3ya.example"],
    ["https://[2001:DB8::1]", "https://[2001:db8::1]"],
    ["https://app.example.com/path", undefined],
    ["https://app.example.com?", undefined],
    ["https://app.example.com#", undefined],
    ["https://app.example.com//", undefined],
    ["https://user@app.example.com", undefined],
    ["https://app.example.com.", undefined],
    ["https://%61pp.example.com", undefined],
    ["https://127.1", undefined],
    ["ftp://app.example.com", undefined],
    ["blob:https://app.example.com", undefined],
    ["app.example.com", undefined],
    ["https://", undefined],
    ["", undefined],
    ["https://*.example.com", undefined],
  ];
  for (const [text, origin] of canonical) {
    test(JSON.stringify(text), () => assert.equal(canonicalOrigin(text), origin));
  }
});
