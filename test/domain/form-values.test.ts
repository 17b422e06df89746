import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { checkFormValues } from "#domain/form-values.ts";
import { limits } from "#domain/limits.ts";
import { FIELD_TYPES, type StrategyField } from "#domain/strategy.ts";

const field = (more: Partial<StrategyField>): StrategyField => ({
  key: "value",
  label: "Value",
  type: "text",
  required: true,
  pattern: null,
  minLength: null,
  maxLength: null,
  placeholder: null,
  help: null,
  autocomplete: null,
  secret: false,
  ...more,
});

/** What becomes of one field: the value kept, the message, or undefined for an optional field left empty. */
function check(
  more: Partial<StrategyField>,
  typed: string | undefined,
): { value?: string; error?: string } | undefined {
  const { values, errors } = checkFormValues(
    [field(more)],
    new Map(typed === undefined ? [] : [["value", typed]]),
  );
  const [value, error] = [values.get("value"), errors.get("value")];
  assert.ok(value === undefined || error === undefined, "a value or an error");
  if (value !== undefined) return { value };
  return error === undefined ? undefined : { error };
}
const required = { error: "Value is required." };

suite("required and optional", () => {
  for (const type of FIELD_TYPES) {
    test(`${type}: missing or empty is an error only where it is required`, () => {
      for (const typed of [undefined, ""]) {
        assert.deepEqual(check({ type }, typed), required);
        assert.equal(check({ type, required: false }, typed), undefined);
      }
    });
  }
  for (const type of ["text", "email", "totp_secret"] as const) {
    test(`${type}: blank counts as empty`, () => {
      for (const typed of [" ", "\t \n", "\u00a0"]) {
        assert.deepEqual(check({ type }, typed), required);
        assert.equal(check({ type, required: false }, typed), undefined);
      }
    });
  }
  test("a password of spaces is a password", () => {
    assert.deepEqual(check({ type: "password" }, "   "), { value: "   " });
  });
  test("an optional field left empty is not held to its length or pattern", () => {
    assert.equal(check({ required: false, minLength: 3, pattern: "[a-z]+" }, ""), undefined);
  });
});

suite("what is typed is what is kept", () => {
  test("a password stays as it is, to the byte", () => {
    for (const typed of [
      " secret ",
      "a\u0000b",
      "pässwörd 🔑",
      "\r\n",
      "e\u0301",
      "\u202e",
      "x".repeat(16_384),
    ]) {
      assert.deepEqual(check({ type: "password" }, typed), { value: typed });
    }
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1 }), (typed) => {
        assert.deepEqual(check({ type: "password" }, typed), { value: typed });
      }),
    );
  });
  test("a text that is not blank stays as it is", () => {
    assert.deepEqual(check({ type: "text" }, " amelia "), { value: " amelia " });
  });
  test("an email address loses the spaces around it", () => {
    assert.deepEqual(check({ type: "email" }, " a@example.com\n"), { value: "a@example.com" });
  });
  test("a TOTP secret is kept in one form, whatever its spacing and case", () => {
    const value = "otpauth://totp/Latchkey?secret=JBSWY3DPEHPK3PXP&algorithm=SHA1&digits=6&period=30";
    assert.deepEqual(check({ type: "totp_secret" }, "jbsw y3dp ehpk 3pxp"), { value });
    assert.deepEqual(
      check({ type: "totp_secret" }, "otpauth://totp/Acme:amelia?secret=JBSWY3DPEHPK3PXP&issuer=Acme"),
      { value },
    );
    assert.deepEqual(check({ type: "totp_secret" }, value), { value });
  });
  test("names that are no field are ignored, and so is `__proto__`", () => {
    const submitted = new Map([
      ["value", "a"],
      ["_csrf", "x"],
      ["other", "y"],
      ["__proto__", "z"],
    ]);
    const { values, errors } = checkFormValues([field({})], submitted);
    assert.deepEqual([...values], [["value", "a"]]);
    assert.equal(errors.size, 0);
  });
  test("every field is looked at, and values come in the strategy's order", () => {
    const fields = [field({ key: "b" }), field({ key: "a" }), field({ key: "c" }), field({ key: "d" })];
    const { values, errors } = checkFormValues(
      fields,
      new Map([
        ["a", "1"],
        ["b", "2"],
      ]),
    );
    assert.deepEqual([...values.keys()], ["b", "a"]);
    assert.deepEqual([...errors.keys()], ["c", "d"]);
  });
});

suite("limits of a field", () => {
  test("length counts characters, not bytes or halves of them", () => {
    assert.deepEqual(check({ minLength: 2 }, "🔑"), { error: "Value must have at least 2 characters." });
    assert.deepEqual(check({ maxLength: 2 }, "🔑🔑"), { value: "🔑🔑" });
    assert.deepEqual(check({ maxLength: 1 }, "ab"), { error: "Value must have at most 1 character." });
    assert.deepEqual(check({ minLength: 3, maxLength: 3 }, "abc"), { value: "abc" });
  });
  test("a pattern must match the whole value", () => {
    assert.deepEqual(check({ pattern: "[0-9]{4}" }, "1234"), { value: "1234" });
    for (const typed of ["12345", "a1234", "1234\n", "123"]) {
      assert.match(check({ pattern: "[0-9]{4}" }, typed)?.error ?? "", /expected form/);
    }
    assert.match(check({ pattern: "a|b" }, "ab")?.error ?? "", /expected form/);
  });
  test("a pattern that hangs other engines does not hang this one", () => {
    const started = performance.now();
    assert.match(check({ pattern: "(a+)+" }, `${"a".repeat(5_000)}!`)?.error ?? "", /expected form/);
    assert.ok(performance.now() - started < 2_000);
  });
  test("at most 16 KiB, in bytes", () => {
    assert.ok(check({ type: "password" }, "x".repeat(limits.formValueBytesMax))?.value);
    assert.deepEqual(check({ type: "password" }, "x".repeat(limits.formValueBytesMax + 1)), {
      error: "Value is too long.",
    });
    assert.deepEqual(check({ type: "text" }, "ä".repeat(limits.formValueBytesMax / 2 + 1)), {
      error: "Value is too long.",
    });
  });
});

suite("email addresses", () => {
  for (const good of [
    "a@example.com",
    "a.b+c@sub.example.co.uk",
    "o'neil@example.com",
    "a@localhost",
    "ü@münchen.example",
    "a..b@example.com",
  ]) {
    test(good, () => assert.deepEqual(check({ type: "email" }, good), { value: good }));
  }
  const wrong = [
    "a",
    "a@",
    "@example.com",
    "a@b@example.com",
    "a b@example.com",
    "a@exa mple.com",
    "a@.example.com",
    "a@example.com.",
    "a@example..com",
    "a\u0000@example.com",
    `${"a".repeat(65)}@example.com`,
  ];
  for (const typed of wrong) {
    test(`${JSON.stringify(typed)} is refused`, () => {
      assert.deepEqual(check({ type: "email" }, typed), {
        error: "Value must be an email address like name@example.com.",
      });
    });
  }
});

test("no message holds what was typed", () => {
  const types = fc.constantFrom(...FIELD_TYPES);
  const typed = fc.string({
    unit: fc.constantFrom("Q", "X", "Z", "0", "1", "8", "@", " ", "é"),
    minLength: 5,
    maxLength: 40,
  });
  fc.assert(
    fc.property(types, typed, (type, text) => {
      const error =
        check({ type, pattern: "never", minLength: 100 }, text)?.error ?? check({ type }, text)?.error ?? "";
      assert.ok(text.trim().length < 3 || !error.includes(text.trim()));
    }),
  );
});
