// docs/operate.md#mail: digests for operators by a real mail server on loopback, with TLS.
import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { SMTPServer } from "smtp-server";
import { mailOperators } from "#actions/upkeep/mail-operators.ts";
import { openLog } from "#lib/log.ts";
import { openMailer, type MailSettings } from "#outbound/mailer.ts";
import { readConfig } from "#service/settings/settings.ts";
import { openCaller, type Caller } from "../caller.ts";
import { runCommand } from "../cli/program.ts";
import { CA_FILE, certificate } from "../documents/tls-target.ts";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import { testInAll } from "../tiers.ts";
import { openOperatorStage, type OperatorStage } from "./stage.ts";

const PASSWORD = "correct-horse-battery";
/** As they were received, oldest first. */
const mails: string[] = [];
let server: SMTPServer;
let port: number;
let stage: OperatorStage;
let caller: Caller;

const KEYS = { key: certificate("server.key.pem"), cert: certificate("server.pem") };

/** A mail server that wants a sign-in; without one, if `password` is null. */
async function startServer(secure: boolean, password: string | null): Promise<SMTPServer> {
  const made = new SMTPServer({
    secure,
    ...KEYS,
    ...(password === null ? { disabledCommands: ["AUTH", "STARTTLS"] } : {}),
    authOptional: password === null,
    onAuth: ({ username, password: given }, _session, callback) =>
      username === "latchkey" && given === password
        ? callback(null, { user: username })
        : callback(new Error(`no such user or password: ${given}`)),
    onData: (stream, _session, callback) => {
      let mail = "";
      stream.on("data", (chunk: Buffer) => (mail += chunk.toString("utf8")));
      stream.on("end", () => {
        mails.push(mail);
        callback();
      });
    },
  });
  made.on("error", () => undefined);
  await new Promise<void>((resolve) => made.listen(0, "127.0.0.1", resolve));
  return made;
}

const portOf = (made: SMTPServer): number => (made.server.address() as AddressInfo).port;
const close = async (made: SMTPServer): Promise<void> => await new Promise((resolve) => made.close(resolve));

before(async () => {
  server = await startServer(true, PASSWORD);
  port = portOf(server);
  stage = await openOperatorStage();
  await stage.installation.apply(
    ...["acme", "globex"].flatMap((account) => [
      `account: ${account}`,
      `blueprint: asks
account: ${account}
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: look, type: review, from: list, title: "Of Mrs. Canary" }
  - { id: out, type: output, refKey: out, from: look }`,
    ]),
  );
  caller = openCaller(stage.service.url, await stage.installation.createKey("acme"));
});

after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await close(server);
});

const settings = (change: Partial<MailSettings> = {}): MailSettings => ({
  host: "127.0.0.1",
  port,
  isTls: true,
  user: "latchkey",
  ca: certificate("ca.pem"),
  from: "latchkey@example.com",
  to: ["ana@example.com", "ben@example.com"],
  everyMs: 900_000,
  ...change,
});

/** What a worker does every ten seconds; gives the lines of the log. */
async function look(password = PASSWORD): Promise<string> {
  let lines = "";
  const log = openLog({ level: "error", format: "json" }, { write: (line) => void (lines += line) });
  const services = {
    db: stage.db,
    log,
    mailer: openMailer(settings(), password),
    publicUrl: () => "https://latchkey.example",
  };
  await mailOperators(services);
  return lines;
}

let passed = 0;

/** Moves the clock on. */
async function pass(seconds: number): Promise<void> {
  passed += seconds;
  await stage.moveClock(`${passed} seconds`);
}

async function runInReview(by = caller): Promise<void> {
  const data = JSON.stringify([{ name: "Canary" }]);
  const { body } = await by.post("/blueprints/asks/trigger", { data, run_name: "canary" });
  await eventually(
    "it waits",
    async () => (await stage.db.query("select 1 from review where run_id = $1", [body.id]))[0],
    PATIENCE_MS,
  );
}

test("what has come to need a person is mailed in one digest, over TLS, with counts, accounts and links only; then nothing until there is more", async () => {
  await look();
  await runInReview();
  await runInReview();
  await runInReview(openCaller(stage.service.url, await stage.installation.createKey("globex")));
  await look();
  assert.equal(mails.length, 0, "events of the last seconds wait");
  await pass(20);
  assert.equal(await look(), "");
  const [mail = "", ...others] = mails;
  assert.equal(others.length, 0);
  const plain = mail.replaceAll("=\r\n", "").replaceAll("=3D", "=");
  assert.match(plain, /^Subject: Latchkey: 3 runs wait for a review\r$/m);
  assert.match(plain, /^To: ana@example.com, ben@example.com\r$/m);
  assert.match(
    plain,
    /acme\r\n {2}2 runs wait for a review\r\n {2}https:\/\/latchkey.example\/dashboard\/reviews\?account=acme\r/,
  );
  assert.match(plain, /globex\r\n {2}1 run waits for a review\r/);
  assert.match(plain, /In all there are now 3 runs waiting/);
  assert.doesNotMatch(plain, /canary/i);
  await pass(3600);
  await look();
  assert.equal(mails.length, 1, "nothing has happened");
  // Less than the interval after a mail, what happens waits for the next one.
  await runInReview();
  await pass(20);
  await look();
  assert.equal(mails.length, 2);
  await runInReview();
  await pass(300);
  await look();
  assert.equal(mails.length, 2);
  await pass(900);
  await look();
  assert.match(mails[2] ?? "", /Subject: Latchkey: 1 run waits for a review/);
});

test("a server that refuses loses nothing, and the log, doctor and the System page say so, without the password", async () => {
  await runInReview();
  await pass(3600);
  const before = mails.length;
  const wrong = "wrong-password-canary";
  const lines = await look(wrong);
  assert.match(lines, /"alarm":"mail_failed"/);
  assert.match(lines, /EAUTH 535/);
  await pass(600);
  assert.equal(await look(wrong), "", "the alarm is raised once");
  const doctor = await runCommand(stage.installation, 1, ["doctor"]);
  assert.match(doctor.stdout, /mail to operators can't be sent since .*EAUTH 535/);
  const admin = await stage.operator("viewer");
  const { body } = await (await stage.holding(admin)).send("GET", "/system");
  assert.match(body.mail.failure, /127\.0\.0\.1:\d+ did not take the mail \(EAUTH 535\)/);
  for (const said of [lines, doctor.stdout, JSON.stringify(body.mail)])
    assert.doesNotMatch(said, /wrong-password-canary|correct-horse/);
  await pass(600);
  await look();
  assert.equal(mails.length, before + 1);
  assert.match(mails.at(-1) ?? "", /1 run waits for a review/);
  // Wrong is only the clock, which the test has moved.
  assert.match((await runCommand(stage.installation, 1, ["doctor"])).stdout, /mail to operators is sent/);
});

test("a certificate of an unknown authority is refused, and so is a server without TLS that is not on loopback", async () => {
  const message = { subject: "x", text: "x" };
  const before = mails.length;
  await assert.rejects(openMailer(settings({ ca: null }), PASSWORD).send(message), /did not take the mail/);
  const plain = await startServer(false, null);
  const unencrypted = { port: portOf(plain), isTls: false, user: null, ca: null };
  await assert.rejects(openMailer(settings({ ...unencrypted, host: "0.0.0.0" }), null).send(message), /ETLS/);
  assert.equal(mails.length, before);
  await openMailer(settings(unencrypted), null).send(message);
  assert.equal(mails.length, before + 1);
  await close(plain);
});

test("the settings belong together, and each mistake is named", () => {
  const read = (environment: Record<string, string>) =>
    readConfig({ LATCHKEY_DATA_DIR: "/nowhere", ...environment }).mail;
  const whole = {
    LATCHKEY_SMTP_URL: "smtp://ana%40example.com@mail.example",
    LATCHKEY_SMTP_PASSWORD: "p",
    LATCHKEY_MAIL_FROM: "a@example.com",
    LATCHKEY_MAIL_TO: "b@example.com, c@example.com",
  };
  const { password, ...found } = read(whole) ?? assert.fail();
  assert.equal(password?.reveal(), "p");
  assert.deepEqual(found, {
    host: "mail.example",
    port: 587,
    isTls: false,
    user: "ana@example.com",
    ca: null,
    from: "a@example.com",
    to: ["b@example.com", "c@example.com"],
    everyMs: 900_000,
  });
  assert.equal(read({}), null);
  for (const [change, message] of [
    [{ LATCHKEY_SMTP_URL: "smtp://u:p@mail.example" }, /LATCHKEY_SMTP_URL must be/],
    [{ LATCHKEY_SMTP_PASSWORD: "" }, /set LATCHKEY_SMTP_PASSWORD_FILE/],
    [{ LATCHKEY_MAIL_TO: "" }, /LATCHKEY_MAIL_TO is not set/],
    [{ LATCHKEY_MAIL_FROM: "nobody" }, /LATCHKEY_MAIL_FROM must be an email address/],
    [{ LATCHKEY_MAIL_EVERY: "1s" }, /LATCHKEY_MAIL_EVERY must be a duration/],
    [{ LATCHKEY_SMTP_CA_FILE: "/nowhere/ca.pem" }, /LATCHKEY_SMTP_CA_FILE: .* can't be read \(ENOENT\)/],
  ] as const)
    assert.throws(() => read({ ...whole, ...change }), message);
});

testInAll(
  "the action that it calls, above",
  "a worker with the settings sends the mail by itself",
  {},
  async () => {
    const before = mails.length;
    await using installation = await openOperatorStage({
      LATCHKEY_SMTP_URL: `smtps://latchkey@127.0.0.1:${port}`,
      LATCHKEY_SMTP_PASSWORD: PASSWORD,
      LATCHKEY_SMTP_CA_FILE: CA_FILE,
      LATCHKEY_MAIL_FROM: "latchkey@example.com",
      LATCHKEY_MAIL_TO: "ana@example.com",
    });
    const listens = async () => (await installation.db.query("select 1 from operator_mail"))[0];
    await eventually("the worker listens", listens, PATIENCE_MS);
    await installation.db.query(
      "select note_operator_event('operator.credential_locked', null, 'cred_x', '{}')",
    );
    await installation.moveClock("1 minute");
    await eventually("the mail", () => mails[before], PATIENCE_MS);
    assert.match(mails[before] ?? "", /Subject: Latchkey: 1 credential locked/);
  },
);
