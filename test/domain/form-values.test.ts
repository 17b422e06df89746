import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { fieldVariable, secretTexts } from "#domain/field-values.ts";
import { explainIssue } from "#domain/form-issue.ts";
import { checkFormValues } from "#domain/form-values.ts";
import { headerRows } from "#domain/header-rows.ts";
import { limits } from "#domain/limits.ts";
import { FIELD_TYPES, type StrategyField } from "#domain/strategy.ts";
import { strategyField } from "./strategy-field.ts";

/** What becomes of one field: the value kept, the message, or undefined for an optional field left empty. */
function check(
  more: Partial<StrategyField>,
  typed: string | undefined,
): { value?: string; error?: string } | undefined {
  const { values, errors } = checkFormValues(
    [strategyField(more)],
    new Map(typed === undefined ? [] : [["value", typed]]),
  );
  const [value, error] = [values.get("value"), errors.get("value")];
  assert.ok(value === undefined || error === undefined, "a value or an error");
  if (value !== undefined) return { value };
  return error && { error: explainIssue(error, "Value") };
}
const required = { error: "Value is required." };

suite("required and optional", () => {
  for (const type of FIELD_TYPES) {
    test(`${type}: missing or empty is an error only where it is required`, () => {
      for (const typed of [undefined, ""]) {
        const expected = type === "checkbox" ? { error: "Tick the box to confirm: Value" } : required;
        assert.deepEqual(check({ type }, typed), expected);
        assert.equal(check({ type, required: false }, typed), undefined);
      }
    });
  }
  for (const type of ["text", "email", "url", "textarea", "select", "totp_secret", "file"] as const) {
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
    const { values, errors } = checkFormValues([strategyField({})], submitted);
    assert.deepEqual([...values], [["value", "a"]]);
    assert.equal(errors.size, 0);
  });
  test("every field is looked at, and values come in the strategy's order", () => {
    const fields = [
      strategyField({ key: "b" }),
      strategyField({ key: "a" }),
      strategyField({ key: "c" }),
      strategyField({ key: "d" }),
    ];
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
    const cpuBefore = process.threadCpuUsage();
    assert.match(check({ pattern: "(a+)+" }, `${"a".repeat(5_000)}!`)?.error ?? "", /expected form/);
    const { user, system } = process.threadCpuUsage(cpuBefore);
    assert.ok(user + system < 2_000_000, `${user + system} µs`);
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

suite("url", () => {
  for (const good of [
    "https://shop.example",
    " http://shop.example:8080/a?b=c#d ",
    "HTTPS://SHOP.EXAMPLE/",
  ]) {
    test(`${good} is kept, without the blanks around it`, () =>
      assert.deepEqual(check({ type: "url" }, good), { value: good.trim() }));
  }
  for (const bad of [
    "shop.example",
    "ftp://shop.example",
    "https://",
    "https:/shop.example",
    "https://user:word@shop.example",
    "https://shop.example/a b",
    "javascript:alert(1)",
    "https://shop.example\\@evil.example",
  ]) {
    test(`${bad} is no web address`, () =>
      assert.deepEqual(check({ type: "url" }, bad), {
        error: "Value must be a web address like https://www.example.com.",
      }));
  }
});

suite("textarea, select, checkbox", () => {
  test("a textarea keeps its lines, as they were typed", () => {
    assert.deepEqual(check({ type: "textarea" }, " a\r\n\r\nb "), { value: " a\n\nb " });
    assert.match(check({ type: "textarea", maxLength: 2 }, "abc")?.error ?? "", /at most 2 characters/);
  });
  test("a select takes its options' values and nothing else", () => {
    const options = [
      { value: "eu", label: "Europe" },
      { value: "us", label: "United States" },
    ];
    assert.deepEqual(check({ type: "select", options }, "eu"), { value: "eu" });
    for (const typed of ["Europe", "EU", " eu", "asia"]) {
      assert.deepEqual(check({ type: "select", options }, typed), {
        error: "Value must be one of the choices.",
      });
    }
  });
  test("a checkbox is stored when it is ticked, and is true in a login", () => {
    assert.deepEqual(check({ type: "checkbox" }, "true"), { value: "true" });
    assert.deepEqual(check({ type: "checkbox" }, "on"), { value: "true" });
    assert.equal(fieldVariable("checkbox", "true"), true);
  });
});

suite("file", () => {
  const PEM = "-----BEGIN CERTIFICATE-----\r\nMIIB\r\n-----END CERTIFICATE-----\r\n";
  test("a text file is kept to the byte", () =>
    assert.deepEqual(check({ type: "file" }, PEM), { value: PEM }));
  test("what is not text is refused, with what to do", () => {
    for (const bytes of [[0x30, 0x82, 0x01, 0x00], [0x41, 0x00], [0xff]]) {
      const error = check({ type: "file" }, Buffer.from(bytes).toString("utf8"))?.error ?? "";
      assert.match(error, /must be in PEM form/);
    }
  });
  test("a file may be longer than a text, up to its own limit", () => {
    assert.ok(check({ type: "file" }, "x".repeat(limits.formFileBytesMax))?.value);
    assert.match(
      check({ type: "file" }, "x".repeat(limits.formFileBytesMax + 1))?.error ?? "",
      /at most 64 KB/,
    );
    assert.match(check({ type: "text" }, "x".repeat(limits.formValueBytesMax + 1))?.error ?? "", /too long/);
  });
  test("each of its long lines gives it away, not only the whole", () => {
    const line = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEH";
    const texts = secretTexts(
      strategyField({ type: "file" }),
      `-----BEGIN PRIVATE KEY-----\n${line}\n-----END PRIVATE KEY-----\n`,
    );
    assert.ok(texts.includes(line));
    assert.ok(!texts.includes("-----BEGIN PRIVATE KEY-----"));
  });
});

suite("headers", () => {
  const typed = (...pairs: readonly (readonly [string, string])[]) =>
    new Map(
      pairs.flatMap(([name, value], index) => {
        const row = headerRows("value")[index];
        assert.ok(row);
        return [
          [row.name, name],
          [row.value, value],
        ] as const;
      }),
    );
  const checkRows = (submitted: ReadonlyMap<string, string>) => {
    const { values, errors } = checkFormValues([strategyField({ type: "headers" })], submitted);
    const error = errors.get("value");
    return values.get("value") ?? (error && explainIssue(error, "Value"));
  };
  test("rows become pairs, empty ones none; a login sees them by name", () => {
    const stored = checkRows(typed([" X-Api-Key ", " k=1 "], ["", ""], ["X-Shop", "north"]));
    assert.equal(stored, '[["X-Api-Key","k=1"],["X-Shop","north"]]');
    assert.deepEqual(fieldVariable("headers", stored), { "X-Api-Key": "k=1", "X-Shop": "north" });
    assert.deepEqual(secretTexts(strategyField({ type: "headers" }), stored), ["k=1", "north"]);
  });
  const refused: readonly (readonly [string, ReadonlyMap<string, string>, RegExp])[] = [
    ["a value without a name", typed(["", "QXZ1"]), /has a value but no name/],
    ["a name without a value", typed(["QXZ1", ""]), /has a name but no value/],
    ["a name with a blank", typed(["QXZ 1", "v"]), /only letters, digits and hyphens/],
    ["a header of the connection", typed(["Host", "QXZ1"]), /set by the connection itself/],
    [
      "a line break in a value",
      typed(["X-A", "QXZ1\r\nX-B: 2"]),
      /characters that are not allowed in a header/,
    ],
    ["a character beyond a byte", typed(["X-A", "QXZ1€"]), /characters that are not allowed in a header/],
    ["a name twice", typed(["X-QXZ1", "v"], ["x-qxz1", "w"]), /given twice/],
  ];
  for (const [name, submitted, says] of refused) {
    test(`${name} is refused, and not quoted`, () => {
      const message = checkRows(submitted) ?? "";
      assert.match(message, says);
      assert.doesNotMatch(message, /QXZ1/i);
    });
  }
});
