import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { limits } from "#domain/limits.ts";
import { SETTINGS } from "#service/settings/settings.ts";

const DOCS = join(import.meta.dirname, "../../docs");
const MIB = 1_048_576;
const KIB = 1_024;
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const plain = (count: number): string => count.toLocaleString("en-US");

/** What a page says of limits: the words around the numbers that the program has. */
const PROMISES: Readonly<Record<string, readonly string[]>> = {
  "api.md": [
    `| JSON body | ${limits.jsonBodyBytesMax / MIB} MiB; of a trigger, and of a batch of triggers, ${limits.triggerJsonBytesMax / MIB} MiB |`,
    `| JSON values in a body | ${plain(limits.jsonValuesMax)} |`,
    `| JSON nesting | ${limits.jsonDepthMax} levels |`,
    `of all callers at once | ${limits.largeBodiesBytesMax / MIB} MiB in a process |`,
    `| multipart: one file | ${limits.multipartFileBytesMax / MIB} MiB |`,
    `| ${limits.multipartBytesMax / MIB} MiB, ${limits.multipartFilesMax} files, ${limits.multipartPartsMax} parts |`,
    `| \`Idempotency-Key\` | 1 to ${limits.idempotencyKeyCharactersMax} characters`,
    `| \`name\`, \`run_name\` | ${limits.nameCharactersMax} characters`,
    `| \`return_url\` | ${plain(limits.returnUrlCharactersMax)} characters |`,
    `an estimated response of ${plain(limits.directDeliveryBytes)} bytes |`,
    `**${limits.idempotencyWindowMs / HOUR} hours** from the first request`,
    `seconds, 0 to ${plain(limits.runDelayMsMax / SECOND)} (${limits.runDelayMsMax / DAY} days)`,
    `1 to ${plain(limits.runExpiryMsMax / SECOND)} (${limits.runExpiryMsMax / DAY} days)`,
    `after N seconds, at most ${limits.statusWaitSecondsMax}.`,
    `A comment every ${limits.eventHeartbeatMs / SECOND} s`,
    `${limits.eventStreamsPerKeyMax} open streams, an account ${limits.eventStreamsPerAccountMax}, and all callers together ${plain(limits.eventStreamsMax)};`,
    `at most ${limits.ignoredKeysMax} names, each shortened to ${limits.ignoredKeyCharactersMax} characters, ${limits.ignoredKeysBytesMax / KIB} KiB in total`,
    `${plain(limits.accountStoredBytes / 1e9)} GB of stored data`,
    `are purged ${limits.retentionMs / DAY} days after it ended`,
  ],
  "operator-api.md": [
    `A session ends after ${limits.operatorIdleMs / MINUTE} minutes without use`,
    `after ${limits.operatorSessionMs / HOUR} hours in any case`,
    `${limits.knownBrowserMs / DAY} days, \`HttpOnly\``,
    `a body has at most ${limits.openBodyBytesMax / KIB} KiB`,
    `have at most ${limits.configBodyBytesMax / KIB} KiB in total`,
    `with ${limits.configCheckMs / SECOND} s of CPU time and ${limits.configCheckMiB} MiB of memory`,
  ],
  "hosted-form.md": [
    `at most ${limits.logoBytesMax / KIB} KiB, preferably square`,
    `| open for longer than ${limits.formLifetimeMs / HOUR} hours |`,
    `| more than ${limits.formBodyBytesMax / KIB} KiB, or`,
  ],
  "webhooks.md": [
    `within ${limits.webhookTimeoutMs / SECOND} seconds`,
    `up to ${limits.webhookEndpointsMax} endpoints`,
    `are kept for ${limits.webhookKeptMs / DAY} days; the log has the first ${plain(limits.webhookAnswerCharactersKept)}`,
  ],
  "schedules.md": [
    `at most ${limits.scheduleTriggerBytesMax / KIB} KiB, without files`,
    `at most ${plain(limits.schedulesMax)} schedules`,
    `is kept for ${limits.scheduleFiresKeptMs / DAY} days`,
  ],
  "browser.md": [`at most ${limits.browserStepMs / SECOND} s or the step's own`],
  "strategies.md": [
    `in order; at most ${limits.loginStepsMax} |`,
    `A login may take ${limits.loginTimeoutMs / SECOND} s`,
  ],
  "secrets.md": [
    `one line of up to ${plain(limits.accountSecretCharactersMax)} characters`,
    `that may receive it, up to ${limits.accountSecretOriginsMax}:`,
  ],
  // Many defaults are limits.
  "configuration.md": SETTINGS.map(
    ({ name, type, default: standard }) => `| \`${name}\` | ${type.replaceAll("|", "\\|")} | ${standard} |`,
  ),
  "blueprints.md": [
    `| \`${limits.runTimeoutMs / MINUTE}m\` |`,
    `a run has ${limits.retriesMax} retries in total`,
    `concurrent requests, at most ${limits.requestsAtOnceMax} |`,
    `up to ${limits.wholeBytesMax / 1e6} MB, and up to ${limits.streamedBytesMax / 1e9} GB`,
    `| ${limits.responseBytesMax / 1e6} MB |`,
    `For the first ${limits.pollInPlaceMs / SECOND} seconds the run waits in its slot`,
    `is considered dead after ${limits.heartbeatStaleMs / SECOND} seconds`,
    `except \`for_each\`, \`concurrency\`, \`from\` and \`milestone\`; at most ${limits.loopStepsMax}.`,
    `at most ${limits.textFieldCharactersMax / 1e6} million characters`,
    `the list of all values, at most ${plain(limits.collectedValuesMax)} |`,
    `at most ${plain(limits.reviewChangesMax)} records of a review can be changed`,
    `a reason has at most ${plain(limits.reviewReasonCharactersMax)} characters`,
    `the data of a node's records, at most ${plain(limits.nodesVariableRecordsMax)} |`,
    `one second of processor time and ${limits.expressionThreadMiB} MiB`,
  ],
  "security.md": [
    `open routes take ${limits.openBodyBytesMax / KIB} KiB`,
    `up to ${limits.largeBodiesBytesMax / MIB} MiB in a process, of which ${limits.largeBodiesReadBytesMax / MIB} MiB are read`,
    `has up to ${plain(limits.dataValuesMax)} values and ${limits.dataDepthMax} levels`,
    `limited to ${limits.jsonRoomBytesMax / MIB} MiB in a process`,
  ],
};

for (const [page, promises] of Object.entries(PROMISES))
  test(`docs/${page} states the limits that the program has`, () => {
    const text = readFileSync(join(DOCS, page), "utf8").replaceAll(/\s+/g, " ");
    for (const promise of promises) assert.ok(text.includes(promise), `docs/${page} has no "${promise}"`);
  });
