// The signing key of another installation is noticed at the start, and not by the first caller.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { generateSigningKey, openSigning, readSigningKey } from "#lib/signing.ts";
import { install, type Installation } from "../service.ts";
import { latchkey } from "./program.ts";

const SAYS =
  /The signing key does not belong to this database.*LATCHKEY_SIGNING_KEY_FILE, or LATCHKEY_SIGNING_KEY\), from your backup/;

let installation: Installation & AsyncDisposable;
before(async () => {
  installation = await install();
  await installation.apply("account: acme\nname: Acme");
});
after(async () => await installation?.[Symbol.asyncDispose]());

test("with another signing key every command that uses it is refused with the remedy, and nothing is changed", async () => {
  const key = generateSigningKey();
  const { db } = installation.database;
  const before = await db.query("select * from installation");
  const keys = async (): Promise<unknown> => await db.query("select id from api_key");
  const keysBefore = await keys();
  for (const command of [
    ["serve"],
    ["serve", "--roles", "api"],
    ["serve", "--roles", "worker"],
    ["keys", "create", "--account", "acme"],
    ["keys", "rotate", "key_x"],
    ["init"],
  ]) {
    const { code, stderr } = await latchkey(command, {
      ...installation.environment,
      LATCHKEY_SIGNING_KEY: key,
    });
    assert.equal(code, 1, command.join(" "));
    assert.match(stderr, SAYS);
    assert.equal(stderr.includes(key), false);
  }
  assert.deepEqual(await db.query("select * from installation"), before);
  assert.deepEqual(await keys(), keysBefore);
});

test("its own key goes on as before, and a database from before has its print written at the next start", async () => {
  const { db } = installation.database;
  const [kept] = await db.query<{ print: Buffer }>("select signing_key_print as print from installation");
  await db.query("delete from installation");
  await (await installation.serveProcess({}, ["api"])).end();
  assert.deepEqual(await db.query("select signing_key_print as print from installation"), [kept]);
  assert.equal((await installation.command("init")).code, 0);
});

test("the print tells keys apart, and is none of the values that the key gives elsewhere", () => {
  const [one, other] = [generateSigningKey(), generateSigningKey()].map((text) => readSigningKey(text));
  assert.ok(one && other);
  const print = openSigning(one).fingerprint();
  assert.deepEqual(openSigning(one).fingerprint(), print);
  assert.notDeepEqual(openSigning(other).fingerprint(), print);
  assert.equal(print.length, 32);
  assert.notDeepEqual(openSigning(one).apiKeyHash("latchkey signing key"), print);
});
