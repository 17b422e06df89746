import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { suite, test } from "node:test";
import { inspect } from "node:util";
import fc from "fast-check";
import { newApiKey } from "#lib/api-key.ts";
import { generateSigningKey, openSigning, readSigningKey, SigningKeyError } from "#lib/signing.ts";

/** 32 bytes 00 01 … 1f: a test key, used nowhere else. */
const FIXED_KEY = "lks_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9LnQNF";
const fresh = () => openSigning(readSigningKey(generateSigningKey()));

suite("the signing key's text", () => {
  test("what is generated is read again, and does not print", () => {
    const text = generateSigningKey();
    assert.match(text, /^lks_[\w-]{48}$/);
    const key = readSigningKey(` ${text}\n`);
    assert.equal(key.reveal().length, 32);
    assert.ok(
      !inspect(key, { depth: 5, showHidden: true }).includes(key.reveal().toString("hex").slice(0, 12)),
    );
    assert.notEqual(text, generateSigningKey());
  });

  const good = generateSigningKey();
  const wrong: Record<string, [text: string, says: RegExp]> = {
    empty: ["", /empty/],
    "a master key": ['{"keys": []}', /master key, not a signing key/],
    "an API key": [newApiKey(), /begin with lks_/],
    "cut off": [good.slice(0, -1), /truncated or mistyped/],
    "too long": [`${good}A`, /truncated or mistyped/],
    "only the prefix": ["lks_", /truncated or mistyped/],
    "another alphabet": [`${good.slice(0, 10)}!${good.slice(11)}`, /truncated or mistyped/],
  };
  for (const [name, [text, says]] of Object.entries(wrong)) {
    test(`${name}: a clear error that holds nothing of it`, () => {
      assert.throws(
        () => readSigningKey(text),
        (error) => {
          assert.ok(error instanceof SigningKeyError);
          assert.match(error.message, says);
          assert.ok(text.length < 12 || !inspect(error).includes(text.slice(4, 12)));
          return true;
        },
      );
    });
  }

  test("every mistyped character is found", () => {
    for (let place = 4; place < good.length; place++) {
      const other = good[place] === "A" ? "B" : "A";
      assert.throws(
        () => readSigningKey(good.slice(0, place) + other + good.slice(place + 1)),
        SigningKeyError,
      );
    }
  });
});

suite("derivations", () => {
  test("the same for the same key, forever: links and API keys survive an update", () => {
    const signing = openSigning(readSigningKey(FIXED_KEY));
    assert.equal(signing.hostedToken("sess_test"), "GhPfnZiBPDSfHmMR0HSSTisQrYmrCMow1GcKJivBgm8");
    assert.equal(
      signing.apiKeyHash("lk_test").toString("hex"),
      "287373ba424fd298f4a2a11b48b8049fe1523e86c4cd2b1666248638a1d879d8",
    );
    const parts = { accountId: "acct_a", runId: "run_a", key: "invoices", expiresAtMs: 1_700_000_000_000 };
    assert.equal(signing.presign(parts), "c52838b6.oq7yNn2oHChtkDPTmni-WawjUufXdeupaM9duzFsyno");
  });

  test("a hosted token has 256 bits, differs by session and by key, and is found by its SHA-256", () => {
    const signing = fresh();
    const token = signing.hostedToken("sess_a");
    assert.match(token, /^[\w-]{43}$/);
    assert.equal(signing.hostedToken("sess_a"), token);
    assert.notEqual(signing.hostedToken("sess_b"), token);
    assert.notEqual(fresh().hostedToken("sess_a"), token);
    assert.deepEqual(signing.tokenLookup(token), createHash("sha256").update(token).digest());
  });

  test("an API key's hash is keyed: the same API key has another in another installation", () => {
    const key = newApiKey();
    assert.equal(fresh().apiKeyHash(key).length, 32);
    assert.notDeepEqual(fresh().apiKeyHash(key), fresh().apiKeyHash(key));
  });

  test("one purpose's value is worthless for another", () => {
    const signing = fresh();
    const values = [
      signing.hostedToken("x"),
      signing.apiKeyHash("x").toString("base64url"),
      signing.apiKeyHash(JSON.stringify(["x"])).toString("base64url"),
      signing.tokenLookup("x").toString("base64url"),
    ];
    assert.equal(new Set(values).size, values.length);
  });
});

suite("presigned URLs", () => {
  const parts = {
    accountId: "acct_a",
    runId: "run_a",
    key: "invoices.valid",
    expiresAtMs: 1_700_000_000_000,
  };
  const signing = fresh();
  const signature = signing.presign(parts);

  test("the signature is URL-safe and holds for exactly its parts", () => {
    assert.match(signature, /^[\w.-]+$/);
    assert.equal(signing.verifyPresigned(parts, signature), true);
    for (const changed of [
      { accountId: "acct_b" },
      { runId: "run_b" },
      { key: "invoices" },
      { expiresAtMs: parts.expiresAtMs + 1 },
      { accountId: "acct_a,run_a", runId: "" },
      { runId: "run_a\0invoices", key: "valid" },
    ]) {
      assert.equal(
        signing.verifyPresigned({ ...parts, ...changed }, signature),
        false,
        JSON.stringify(changed),
      );
    }
    assert.equal(fresh().verifyPresigned(parts, signature), false);
  });

  test("no character of it can be changed, left out or added", () => {
    for (let place = 0; place < signature.length; place++) {
      for (const other of ["A", "B", "_", "", "=", "é"]) {
        const changed = signature.slice(0, place) + other + signature.slice(place + 1);
        if (changed !== signature) assert.equal(signing.verifyPresigned(parts, changed), false, changed);
      }
    }
    for (const changed of ["", `${signature}=`, ` ${signature}`, `${signature}\n`, signature.toUpperCase()]) {
      assert.equal(signing.verifyPresigned(parts, changed), false);
    }
  });

  test("parts never run into each other", () => {
    const part = fc.string({ unit: "binary", maxLength: 6 });
    fc.assert(
      fc.property(fc.tuple(part, part, part), fc.tuple(part, part, part), (a, b) => {
        const of = ([accountId, runId, key]: [string, string, string]) => ({
          accountId,
          runId,
          key,
          expiresAtMs: 1,
        });
        const same = a.every((text, index) => text === b[index]);
        assert.equal(signing.verifyPresigned(of(a), signing.presign(of(b))), same);
      }),
    );
  });
});

suite("the CSRF value", () => {
  const signing = fresh();
  const nowMs = 1_700_000_000_000;
  const lifetimeMs = 3_600_000;
  const value = signing.csrf("token-a", nowMs);

  test("is fresh for every rendering and good for its own token and key only", () => {
    assert.notEqual(signing.csrf("token-a", nowMs), value);
    assert.equal(signing.verifyCsrf("token-a", value, { nowMs, lifetimeMs }), true);
    assert.equal(signing.verifyCsrf("token-b", value, { nowMs, lifetimeMs }), false);
    assert.equal(fresh().verifyCsrf("token-a", value, { nowMs, lifetimeMs }), false);
  });

  test("ends with its lifetime, to the millisecond", () => {
    assert.equal(signing.verifyCsrf("token-a", value, { nowMs: nowMs + lifetimeMs, lifetimeMs }), true);
    assert.equal(signing.verifyCsrf("token-a", value, { nowMs: nowMs + lifetimeMs + 1, lifetimeMs }), false);
  });

  test("takes a clock with fractions of a millisecond", () => {
    const fraction = signing.csrf("token-a", nowMs + 0.75);
    assert.equal(signing.verifyCsrf("token-a", fraction, { nowMs: nowMs + 0.75, lifetimeMs }), true);
  });

  test("can't be given a later time, or any other change", () => {
    const [nonce, issued, mac] = value.split(".");
    for (const changed of [
      `${nonce}.${Number(issued) + lifetimeMs}.${mac}`,
      `${nonce}.0${issued}.${mac}`,
      `${nonce}.${issued}.${mac}.`,
      `${nonce?.slice(1)}A.${issued}.${mac}`,
      `${issued}.${mac}`,
      "",
      "..",
      `${value} `,
    ]) {
      assert.equal(signing.verifyCsrf("token-a", changed, { nowMs, lifetimeMs }), false, changed);
    }
  });
});
