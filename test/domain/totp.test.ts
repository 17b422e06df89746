import assert from "node:assert/strict";
import { suite, test } from "node:test";
import fc from "fast-check";
import { explainIssue } from "#domain/form-issue.ts";
import { Secret } from "otpauth";
import {
  parseTotpSecret,
  totpCode,
  writeTotpSecret,
  type TotpAlgorithm,
  type TotpSecret,
} from "#domain/totp.ts";

const base32 = (text: string): string => Secret.fromLatin1(text).base32;
const rfcSecret = (algorithm: TotpAlgorithm, bytes: number, digits: number): TotpSecret => ({
  secretBase32: base32("1234567890".repeat(7).slice(0, bytes)),
  algorithm,
  digits,
  periodSeconds: 30,
});

suite("codes are those of RFC 6238, appendix B", () => {
  const secrets = {
    SHA1: rfcSecret("SHA1", 20, 8),
    SHA256: rfcSecret("SHA256", 32, 8),
    SHA512: rfcSecret("SHA512", 64, 8),
  };
  const table: readonly [seconds: number, sha1: string, sha256: string, sha512: string][] = [
    [59, "94287082", "46119246", "90693936"],
    [1_111_111_109, "07081804", "68084774", "25091201"],
    [1_111_111_111, "14050471", "67062674", "99943326"],
    [1_234_567_890, "89005924", "91819424", "93441116"],
    [2_000_000_000, "69279037", "90698825", "38618901"],
    [20_000_000_000, "65353130", "77737706", "47863826"],
  ];
  for (const [seconds, sha1, sha256, sha512] of table) {
    test(`at ${seconds} s`, () => {
      assert.equal(totpCode(secrets.SHA1, seconds * 1_000).code, sha1);
      assert.equal(totpCode(secrets.SHA256, seconds * 1_000).code, sha256);
      assert.equal(totpCode(secrets.SHA512, seconds * 1_000).code, sha512);
    });
  }
});

test("codes are those of RFC 4226, appendix D", () => {
  const codes = [
    "755224",
    "287082",
    "359152",
    "969429",
    "338314",
    "254676",
    "287922",
    "162583",
    "399871",
    "520489",
  ];
  codes.forEach((code, counter) => {
    assert.equal(totpCode(rfcSecret("SHA1", 20, 6), counter * 30_000).code, code);
  });
});

test("a code says its step and how long it is good for", () => {
  const secret = { ...rfcSecret("SHA1", 20, 6), periodSeconds: 60 };
  assert.deepEqual(totpCode(secret, 120_000), {
    code: totpCode(secret, 179_999).code,
    step: 2,
    validForMs: 60_000,
  });
  assert.equal(totpCode(secret, 179_999).validForMs, 1);
  assert.equal(totpCode(secret, 180_000).step, 3);
});

const KEY = "JBSWY3DPEHPK3PXP";
const LONG = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
const plain = { secretBase32: KEY, algorithm: "SHA1", digits: 6, periodSeconds: 30 } as const;

suite("what authenticator apps read is read, with their settings", () => {
  const accepted: Record<string, [text: string, secret: TotpSecret]> = {
    "the key alone": [KEY, plain],
    "lower case": [KEY.toLowerCase(), plain],
    "in groups with spaces": ["jbsw y3dp ehpk 3pxp", plain],
    "in groups with dashes": ["JBSW-Y3DP-EHPK-3PXP", plain],
    "with a word processor's dashes and no-break spaces": ["JBSW–Y3DP‑EHPK\u00a03PXP", plain],
    "with space around it and a line break": ["  JBSWY3DP\r\nEHPK3PXP\n", plain],
    "32 characters": [LONG, { ...plain, secretBase32: LONG }],
    "26 characters, 16 bytes": [
      "JBSWY3DPEHPK3PXPJBSWY3DPEA",
      { ...plain, secretBase32: "JBSWY3DPEHPK3PXPJBSWY3DPEA" },
    ],
    "with padding": [
      "JBSWY3DPEHPK3PXPJBSWY3DPEA======",
      { ...plain, secretBase32: "JBSWY3DPEHPK3PXPJBSWY3DPEA" },
    ],
    "a link": [`otpauth://totp/Acme:amelia?secret=${KEY}&issuer=Acme`, plain],
    "a link with everything": [
      `otpauth://totp/Acme%3Aamelia%40example.com?secret=${KEY}&issuer=Acme&algorithm=SHA512&digits=8&period=60`,
      { secretBase32: KEY, algorithm: "SHA512", digits: 8, periodSeconds: 60 },
    ],
    "a link without a label": [`otpauth://totp/?secret=${KEY}`, plain],
    "a link without a label or its slash": [`otpauth://totp?secret=${KEY}`, plain],
    "a link in capitals": [`OTPAUTH://TOTP/AMELIA?SECRET=${KEY}`, plain],
    "SHA-256 with a dash": [
      `otpauth://totp/a?secret=${KEY}&algorithm=SHA-256`,
      { ...plain, algorithm: "SHA256" },
    ],
    "sha1 in lower case": [`otpauth://totp/a?secret=${KEY}&algorithm=sha1`, plain],
    "seven digits": [`otpauth://totp/a?secret=${KEY}&digits=7`, { ...plain, digits: 7 }],
    "a period of 15 s": [`otpauth://totp/a?secret=${KEY}&period=15`, { ...plain, periodSeconds: 15 }],
    "a period of 120 s": [`otpauth://totp/a?secret=${KEY}&period=120`, { ...plain, periodSeconds: 120 }],
    "spaces in the link's key, encoded": ["otpauth://totp/a?secret=JBSW%20Y3DP%20EHPK%203PXP", plain],
    "spaces in the link's key, as plus signs": ["otpauth://totp/a?secret=JBSW+Y3DP+EHPK+3PXP", plain],
    "spaces in the link's key, as they are": ["otpauth://totp/a?secret=jbsw y3dp ehpk 3pxp", plain],
    "padding in the link's key": [
      "otpauth://totp/a?secret=JBSWY3DPEHPK3PXPJBSWY3DPEA%3D%3D%3D%3D%3D%3D",
      { ...plain, secretBase32: "JBSWY3DPEHPK3PXPJBSWY3DPEA" },
    ],
    "an image and a colour": [
      `otpauth://totp/a?secret=${KEY}&image=https%3A%2F%2Fexample.com%2Fa.png&color=ff0000`,
      plain,
    ],
    "a fragment": [`otpauth://totp/a?secret=${KEY}#top`, plain],
    "a broken escape in the label": [`otpauth://totp/100%?secret=${KEY}`, plain],
  };
  for (const [name, [text, secret]] of Object.entries(accepted)) {
    test(name, () => assert.deepEqual(parseTotpSecret(text), { ok: true, secret }));
  }
});

suite("what would give wrong codes is refused, in words for the end user and without what was typed", () => {
  const refused: Record<string, [text: string, says: RegExp]> = {
    empty: ["", /is empty/],
    "only dashes": [" - - ", /is empty/],
    "a transfer link": ["otpauth-migration://offline?data=CjEKCkhlbGxvId6tvu8%3D", /moving accounts/],
    "a counter-based key": [`otpauth://hotp/a?secret=${KEY}&counter=0`, /counter-based/],
    "another kind of link": [`otpauth://steam/a?secret=${KEY}`, /must begin with otpauth:\/\/totp\//],
    "a link without its slashes": [`otpauth:totp/a?secret=${KEY}`, /must begin with otpauth:\/\/totp\//],
    "a web address": ["https://example.com/qr.png", /a link, but not one/],
    "the code itself": ["123456", /looks like a one-time code/],
    "the code with a space": ["234 567", /looks like a one-time code/],
    "two secrets": [`otpauth://totp/a?secret=${KEY}&secret=${LONG}`, /twice/],
    "two secrets, one in capitals": [`otpauth://totp/a?secret=${KEY}&SECRET=${LONG}`, /twice/],
    "two digits": [`otpauth://totp/a?secret=${KEY}&digits=6&digits=8`, /twice/],
    "an unknown setting twice": [`otpauth://totp/a?secret=${KEY}&x=1&x=2`, /twice/],
    "no secret": ["otpauth://totp/a?issuer=Acme", /no secret key/],
    "no settings": ["otpauth://totp/a", /no secret key/],
    "an empty secret": ["otpauth://totp/a?secret=", /is empty/],
    MD5: [`otpauth://totp/a?secret=${KEY}&algorithm=MD5`, /algorithm/],
    "an empty algorithm": [`otpauth://totp/a?secret=${KEY}&algorithm=`, /algorithm/],
    "SHA3-256": [`otpauth://totp/a?secret=${KEY}&algorithm=SHA3-256`, /algorithm/],
    "20 digits": [`otpauth://totp/a?secret=${KEY}&digits=20`, /6 to 8 digits/],
    "5 digits": [`otpauth://totp/a?secret=${KEY}&digits=5`, /6 to 8 digits/],
    "digits in words": [`otpauth://totp/a?secret=${KEY}&digits=six`, /6 to 8 digits/],
    "digits with a sign": [`otpauth://totp/a?secret=${KEY}&digits=%2B6`, /6 to 8 digits/],
    "digits with a fraction": [`otpauth://totp/a?secret=${KEY}&digits=6.0`, /6 to 8 digits/],
    "Steam's codes": [`otpauth://totp/a?secret=${KEY}&encoder=steam`, /special kind/],
    "a period of 0": [`otpauth://totp/a?secret=${KEY}&period=0`, /15 to 120 seconds/],
    "a period of 14": [`otpauth://totp/a?secret=${KEY}&period=14`, /15 to 120 seconds/],
    "a period of 121": [`otpauth://totp/a?secret=${KEY}&period=121`, /15 to 120 seconds/],
    "a period of 1e2": [`otpauth://totp/a?secret=${KEY}&period=1e2`, /15 to 120 seconds/],
    "one character": ["A", /too few or too many/],
    "two characters": ["AB", /too short/],
    "eight characters": ["JBSWY3DP", /too short/],
    "fifteen characters": ["JBSWY3DPEHPK3PX", /too short/],
    "seventeen characters": [`${KEY}A`, /too few or too many/],
    "nineteen characters": [`${KEY}AAA`, /too few or too many/],
    "twenty-two characters": [`${KEY}AAAAAA`, /too few or too many/],
    "the digit 0": ["JBSWY3DPEHPK3PX0", /letters A to Z and the digits 2 to 7/],
    "the digit 1": ["JBSWY3DPEHPK3PX1", /letters A to Z/],
    "the digit 8": ["JBSWY3DPEHPK3PX8", /letters A to Z/],
    "a letter that only looks like A": ["JBSWY3DPEHPK3PXА", /letters A to Z/],
    "full-width letters": ["ＪＢＳＷY3DPEHPK3PXP", /letters A to Z/],
    "a letter that grows in capitals": ["JBSWY3DPEHPK3Pß", /letters A to Z/],
    "the words before it": [`secret=${KEY}`, /letters A to Z/],
    "an equals sign in its middle": ["JBSWY3DP=EHPK3PXP", /letters A to Z/],
    "an escaped ampersand": [`otpauth://totp/a?secret=${KEY}%26digits=8`, /letters A to Z/],
    "a NUL": [`${KEY}\u0000`, /letters A to Z/],
    "a password": ["correct horse battery staple!", /letters A to Z/],
  };
  for (const [name, [text, says]] of Object.entries(refused)) {
    test(name, () => {
      const parsed = parseTotpSecret(text);
      assert.ok(!parsed.ok);
      const message = explainIssue(parsed.issue, "Secret");
      assert.match(message, says);
      for (const word of text
        .split(/[\s:/?&=#-]+/)
        .filter((part) => part.length > 7 && !/^(otpauth|algorithm)/.test(part))) {
        assert.ok(!message.includes(word), word);
      }
    });
  }
});

const secrets = fc.record(
  {
    secretBase32: fc
      .uint8Array({ minLength: 10, maxLength: 80 })
      .map((bytes) => new Secret({ buffer: Uint8Array.from(bytes).buffer }).base32),
    algorithm: fc.constantFrom("SHA1" as const, "SHA256" as const, "SHA512" as const),
    digits: fc.integer({ min: 6, max: 8 }),
    periodSeconds: fc.integer({ min: 15, max: 120 }),
  },
  { noNullPrototype: true },
);

test("what is stored reads back as the same secret, however it was grouped", () => {
  fc.assert(
    fc.property(secrets, (secret) => {
      assert.deepEqual(parseTotpSecret(writeTotpSecret(secret)), { ok: true, secret });
      const grouped = secret.secretBase32.toLowerCase().replace(/.{4}/g, "$& ");
      const parsed = parseTotpSecret(grouped);
      assert.equal(parsed.ok && parsed.secret.secretBase32, secret.secretBase32);
    }),
  );
});

test("any text gives a secret that makes codes, or a message", () => {
  const pieces = fc.array(
    fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("otpauth://totp/", "?secret=", KEY, "&digits=", "%", "=", "&", "8"),
    ),
    { maxLength: 8 },
  );
  fc.assert(
    fc.property(pieces, (parts) => {
      const parsed = parseTotpSecret(parts.join(""));
      if (parsed.ok) assert.match(totpCode(parsed.secret, 1_700_000_000_000).code, /^\d{6,8}$/);
      else assert.match(explainIssue(parsed.issue, "Secret"), /\.$/);
    }),
  );
});
