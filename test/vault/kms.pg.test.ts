import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CreateKeyCommand, EncryptCommand, KMSClient } from "@aws-sdk/client-kms";
import { must } from "#lib/assert.ts";
import { connect, openCaller } from "../caller.ts";
import type { Target } from "../flow/target.ts";
import { install, type CommandResult, type Installation } from "../service.ts";
import { latchkey } from "../cli/program.ts";
import { startMoto, type Moto } from "./moto.ts";
import { portalDocuments, startTokenPortal } from "./token-portal.ts";

const TOKEN = "canary-token-of-the-kms";

let moto: Moto;
let target: Target;
let kms: KMSClient;
let keyId: string;
let awsEnvironment: Record<string, string>;
let installation: Installation & AsyncDisposable;

before(async () => {
  moto = await startMoto();
  target = await startTokenPortal(TOKEN);
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  kms = new KMSClient({ region: "eu-central-1", endpoint: moto.url, credentials });
  keyId = await newKmsKey();
  awsEnvironment = {
    AWS_REGION: "eu-central-1",
    AWS_ENDPOINT_URL_KMS: moto.url,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
  };
  installation = await install({ ...awsEnvironment, LATCHKEY_MASTER_KEY_KMS: keyId });
  await installation.apply(...portalDocuments(target.url));
});

after(async () => {
  kms?.destroy();
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
  await moto?.stop();
});

async function newKmsKey(): Promise<string> {
  const { KeyMetadata } = await kms.send(new CreateKeyCommand({}));
  return must(KeyMetadata?.KeyId, "a key");
}

const keyFile = (): string => join(installation.dataFolder, "master.key");

async function start(environment: Record<string, string>): Promise<CommandResult> {
  return await latchkey(["master-key", "status"], { ...installation.environment, ...environment });
}

test("init wraps the keyset: the file alone opens nothing, and names this installation", () => {
  const text = readFileSync(keyFile(), "utf8");
  const file = JSON.parse(text) as { wrapped_by: string; context: Record<string, string> };
  assert.equal(file.wrapped_by, "aws-kms");
  assert.equal(file.context["latchkey:purpose"], "master-key");
  assert.match(file.context["latchkey:installation"] ?? "", /^[0-9a-f-]{36}$/);
  assert.doesNotMatch(text, /"keys"|"d"/);
});

test("the service opens it at start, collects, logs in, rotates to a second key without a restart", async () => {
  const service = await installation.serveProcess();
  const caller = openCaller(service.url, await installation.createKey("acme"));
  const run = async (id: string): Promise<string> => {
    const { body } = await caller.post("/blueprints/read/trigger", { credential_id: id });
    return (await caller.waitForRun(body.id)).body.status;
  };
  const first = await connect(caller, "strat_portal", { token: TOKEN });
  assert.equal(await run(first), "completed");
  const before = JSON.parse(readFileSync(keyFile(), "utf8")) as { context: object };

  const added = await installation.command("master-key", "add");
  const kid = must(/Added (\S+) to the file \S+ wrapped by AWS KMS/.exec(added.stdout)?.[1], added.stderr);
  assert.equal((await installation.command("master-key", "promote", kid)).code, 0);
  assert.equal((await installation.command("master-key", "rewrap")).code, 0);
  assert.equal(await run(first), "completed");
  const { context } = JSON.parse(readFileSync(keyFile(), "utf8")) as { context: object };
  assert.deepEqual(context, before.context);
  const doctor = await installation.command("doctor");
  assert.equal(doctor.code, 0, doctor.stdout);
  await service.end();
});

test("each way in which it can't be opened is refused at start, with its reason", async () => {
  const whole = readFileSync(keyFile(), "utf8");
  const file = JSON.parse(whole) as { context: Record<string, string>; ciphertext: string };
  const write = (changed: object): void => writeFileSync(keyFile(), JSON.stringify({ ...file, ...changed }));
  const refused = async (environment: Record<string, string>, says: RegExp): Promise<void> => {
    const { code, stdout, stderr } = await start(environment);
    assert.equal(code, 1, stdout);
    assert.match(stderr, says);
    assert.doesNotMatch(stderr, /"d"|\bat .*\.ts/);
  };
  try {
    write({ context: { ...file.context, "latchkey:installation": "another" } });
    await refused({}, /damaged, belongs to another installation, or was wrapped by another key/);
    write({ ciphertext: Buffer.from("x".repeat(200)).toString("base64") });
    await refused({}, /AWS KMS could not encrypt or decrypt the master key/);
    write({ wrapped_by: "somebody" });
    await refused({}, /does not contain a keyset that is wrapped by AWS KMS/);
    writeFileSync(keyFile(), whole);
    // Not here: a keyset that another KMS key has wrapped, or a key that does not exist. AWS refuses both; moto takes the key
    // from the bytes and does not look at the name.
    await refused({ AWS_ENDPOINT_URL_KMS: "http://127.0.0.1:9" }, /this machine can reach KMS/);
    await refused({ LATCHKEY_MASTER_KEY_KMS: "" }, /This is not a master key|wrapped by AWS KMS/);
    await refused({ LATCHKEY_MASTER_KEY: "{}" }, /LATCHKEY_MASTER_KEY_KMS can't both be set/);
  } finally {
    writeFileSync(keyFile(), whole);
  }
  assert.equal((await start({})).code, 0);
});

test("what KMS opens and is no keyset is refused too", async () => {
  const whole = readFileSync(keyFile(), "utf8");
  const file = JSON.parse(whole) as { context: Record<string, string> };
  const { CiphertextBlob } = await kms.send(
    new EncryptCommand({ KeyId: keyId, Plaintext: Buffer.from("hello"), EncryptionContext: file.context }),
  );
  writeFileSync(
    keyFile(),
    JSON.stringify({ ...file, ciphertext: Buffer.from(must(CiphertextBlob, "bytes")).toString("base64") }),
  );
  const { code, stderr } = await start({});
  writeFileSync(keyFile(), whole);
  assert.equal(code, 1);
  assert.match(stderr, /This is not a master key/);
  assert.doesNotMatch(stderr, /hello/);
});

test("a plain keyset is not taken for a wrapped one; `wrap` wraps it, whole", async () => {
  await using plain = await install(awsEnvironment);
  const file = join(plain.dataFolder, "master.key");
  const text = readFileSync(file, "utf8");
  const environment = { ...plain.environment, LATCHKEY_MASTER_KEY_KMS: keyId };
  const refused = await latchkey(["serve"], environment);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /Run `latchkey master-key wrap` to wrap a plain one/);
  assert.equal(readFileSync(file, "utf8"), text);
  const wrapped = await latchkey(["master-key", "wrap"], environment);
  assert.equal(wrapped.code, 0, wrapped.stderr);
  assert.match(wrapped.stderr, /in plain text/);
  assert.doesNotMatch(readFileSync(file, "utf8"), /"keys"/);
  assert.equal((await latchkey(["doctor"], environment)).code, 0);
  assert.equal((await latchkey(["master-key", "wrap"], environment)).code, 1);
  const unset = await latchkey(["master-key", "wrap"], plain.environment);
  assert.match(unset.stderr, /Set LATCHKEY_MASTER_KEY_KMS/);
  rmSync(file);
});
