// docs/security.md, "The sealed format": the plain texts of the vault, with the origins that they may reach.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isSameOrigins,
  originsIn,
  readCredential,
  readWithOrigins,
  UnknownContent,
  withOrigins,
  writeCredential,
  writeWithOrigins,
} from "#domain/destination.ts";

const FIELDS = new Map([
  ["username", "amelia"],
  ["origins", "a field of that name is a field"],
  ["password", " @origins pässwörd\u0000 🔑 "],
]);
const ORIGINS = ["https://a.example", "http://[::1]:8080"];

test("what is written is read: fields in their order, origins in theirs, none and no list are two things", () => {
  assert.deepEqual(readCredential(writeCredential(FIELDS, ORIGINS)), { fields: FIELDS, origins: ORIGINS });
  assert.deepEqual(readCredential(writeCredential(FIELDS, [])).origins, []);
  assert.equal(readCredential(JSON.stringify([...FIELDS])).origins, null);
  const tokens = { accessToken: "a", refreshToken: null };
  assert.deepEqual(readWithOrigins(writeWithOrigins(tokens, ORIGINS)), { value: tokens, origins: ORIGINS });
  assert.deepEqual(readWithOrigins(JSON.stringify(tokens)), { value: tokens, origins: null });
});

test("an earlier release, which may run beside this one, finds the fields and members that it knows", () => {
  const before = new Map(JSON.parse(writeCredential(FIELDS, ORIGINS)) as [string, string][]);
  for (const [key, value] of FIELDS) assert.equal(before.get(key), value);
  // No document can name it: keys of fields begin with a letter.
  assert.deepEqual([...before.keys()], ["@origins", ...FIELDS.keys()]);
  assert.equal(JSON.parse(writeWithOrigins({ accessToken: "a" }, ORIGINS)).accessToken, "a");
});

test("other origins leave the content as it is, in every kind of value", () => {
  const credential = withOrigins("credential", writeCredential(FIELDS, ["https://old.example"]), ORIGINS);
  assert.deepEqual(readCredential(credential), { fields: FIELDS, origins: ORIGINS });
  for (const kind of ["login_session", "oauth_token"] as const) {
    const moved = withOrigins(kind, '{"headers":{"a":"b"},"origins":["https://old.example"]}', ORIGINS);
    assert.deepEqual(readWithOrigins(moved), { value: { headers: { a: "b" } }, origins: ORIGINS });
    assert.deepEqual(originsIn(kind, moved), ORIGINS);
  }
});

test("anything else is refused, and not quoted", () => {
  const wrong = [
    "",
    "secret",
    "null",
    "{}",
    "[1]",
    '[["secret"]]',
    '[["a","b","c"]]',
    '[["a",1]]',
    '[["@later","secret"]]',
  ];
  for (const plain of wrong) {
    assert.throws(
      () => readCredential(plain),
      (error: unknown) => {
        assert.ok(error instanceof UnknownContent, plain);
        assert.ok(!error.message.includes("secret"));
        return true;
      },
    );
  }
  for (const plain of ["", "secret", "null", "[]", '{"origins":"https://a.example"}', '{"origins":[1]}'])
    assert.throws(() => readWithOrigins(plain), UnknownContent, plain);
});

test("origins are the same in whatever order, and not when one is missing", () => {
  assert.ok(isSameOrigins(ORIGINS, ORIGINS.toReversed()));
  for (const other of [[], ORIGINS.slice(1), [...ORIGINS, "https://b.example"]])
    assert.ok(!isSameOrigins(ORIGINS, other) && !isSameOrigins(other, ORIGINS));
});
