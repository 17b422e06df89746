import { LATEST_EDITION } from "./edition.ts";
import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import { TEST_TARGET_ORIGIN, testSlugOf } from "./test-mode.ts";

/** Keys of an account's document that its test account has as well. */
const ACCOUNT_KEYS = [
  "name",
  "allowed_origins",
  "embed_origins",
  "session_lifetime",
  "retention",
  "rate_limit",
  "review_step_up",
  "branding",
] as const;

/** Fewer than an account's own by default: runs of tests must not crowd out real ones. */
const CONCURRENCY = 10;

const pick = (document: JsonObject, keys: readonly string[]): JsonObject =>
  Object.fromEntries(
    keys.flatMap((key) => (document[key] === undefined ? [] : [[key, document[key]] as const])),
  );

/** Documents are checked, so anything else is not there. */
const textOf = (value: Json | undefined): string => (typeof value === "string" ? value : "");

const slugOf = ({ account }: JsonObject): string => testSlugOf(textOf(account));

const list = (value: Json | undefined): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isJsonObject) : [];

/** The document of an account's test account. Its webhooks are not taken over: endpoints of test mode are its own. */
export const testAccountDocument = (document: JsonObject): JsonObject => ({
  account: slugOf(document),
  ...pick(document, ACCOUNT_KEYS),
  concurrency: CONCURRENCY,
});

/** Types of fields that a test value can be typed into. */
const TYPED = new Set<unknown>(["text", "password", "email", "textarea"]);
/** What would refuse a test value. */
const RESTRICTIONS = ["pattern", "min_length", "max_length"];

function testField(field: JsonObject): JsonObject {
  if (!TYPED.has(field["type"])) return field;
  return Object.fromEntries(Object.entries(field).filter(([key]) => !RESTRICTIONS.includes(key)));
}

/** For a strategy whose form has no field for text, such as one of `oauth2`. */
const OWN_FIELD: JsonObject = { key: "test_value", label: "Test value", type: "text", required: false };

/** The same form; its login is that of the test target, whatever the strategy's own is. */
export function testStrategyDocument(document: JsonObject): JsonObject {
  const own = list(document["fields"]).map(testField);
  const fields = own.some(({ type }) => TYPED.has(type)) ? own : [...own, OWN_FIELD];
  const login = isJsonObject(document["login"]) ? document["login"] : {};
  return {
    strategy: document["strategy"] ?? "",
    account: slugOf(document),
    ...pick(document, ["name", "description", "logo_url", "verify", "concurrency", "retired"]),
    hosts: [TEST_TARGET_ORIGIN],
    fields,
    login: { type: "http", ...loginSteps(fields), ...pick(login, ["cache", "lockout"]) },
    edition: LATEST_EDITION,
  };
}

function loginSteps(fields: readonly JsonObject[]): JsonObject {
  const typed = fields.filter(({ type }) => TYPED.has(type)).map(({ key }) => textOf(key));
  const [totp] = fields.filter(({ type }) => type === "totp_secret").map(({ key }) => textOf(key));
  const form = Object.fromEntries(typed.map((key) => [key, `{{ $credential.${key} }}`]));
  const expect = { status: [200] };
  return {
    steps: [
      {
        request: { method: "POST", url: "/login", form },
        expect,
        extract: { test_next: { json: "next", secret: false } },
      },
      ...(totp === undefined
        ? []
        : [
            {
              when: `$test_next = "code" and $exists($credential.${totp})`,
              request: {
                method: "POST",
                url: "/login/code",
                form: { code: `{{ $credential.${totp}.code }}` },
              },
              expect,
            },
          ]),
    ],
    check: { request: { url: "/me" }, expect },
  };
}

/** Prefix of the nodes and inputs that only test mode has. */
const OWN = /^test_/;

/**
 * The same inputs, metadata, credentials and results; what is in between reads from the test target. Schedules are not taken over: those of
 * test mode are made by its keys.
 */
export function testBlueprintDocument(document: JsonObject): JsonObject {
  const nodes = list(document["nodes"]);
  const [slot] = Object.keys(isJsonObject(document["credentials"]) ? document["credentials"] : {});
  return {
    blueprint: document["blueprint"] ?? "",
    account: slugOf(document),
    ...pick(document, ["name", "description", "icon", "credentials", "timeout", "retention", "retired"]),
    ...(document["metadata"] !== undefined && {
      metadata: list(document["metadata"]).filter(({ name }) => !OWN.test(textOf(name))),
    }),
    ...(slot === undefined && { hosts: [TEST_TARGET_ORIGIN] }),
    nodes: [
      ...nodes.filter(
        ({ id, type, refKey }) => type === "input" && !OWN.test(textOf(id)) && !OWN.test(textOf(refKey)),
      ),
      ...nodesOfTarget(slot),
      ...nodes.filter(({ type }) => type === "output").map(testOutput),
    ],
    edition: LATEST_EDITION,
  };
}

const OUTCOME = "$nodes.test_plan.outcome";

function nodesOfTarget(slot: string | undefined): readonly JsonObject[] {
  // Without a credential a URL must be absolute.
  const target = (path: string): string => (slot === undefined ? `${TEST_TARGET_ORIGIN}${path}` : path);
  const by = { type: "http", ...(slot !== undefined && { credential: slot }) };
  return [
    { id: "test_outcome", type: "input", refKey: "test_outcome", accepts: "text" },
    {
      id: "test_records",
      type: "input",
      refKey: "test_records",
      accepts: "json",
      schema: { type: "array", maxItems: 10_000, items: { type: "object" } },
    },
    {
      ...by,
      id: "test_plan",
      request: { url: target("/plan"), query: { outcome: "{{ $inputs.test_outcome }}" } },
      extract: { outcome: { json: "outcome" } },
    },
    {
      ...by,
      id: "test_read",
      name: "Test target",
      effect: "read",
      request: {
        method: "POST",
        url: target("/records"),
        json: { outcome: `{{ ${OUTCOME} }}`, records: "{{ $inputs.test_records }}" },
      },
      records: "records",
      expect: { min_records: 0 },
    },
    {
      id: "test_checked",
      type: "validate",
      from: "test_read",
      rules: [
        {
          assert: "$not(test_invalid = true)",
          field: "test_invalid",
          message: "The record is invalid, as the test asked",
        },
      ],
      on_invalid: "mark",
    },
    {
      id: "test_review",
      type: "review",
      from: "test_checked",
      when: `${OUTCOME} = "review"`,
      title: "A review of test mode",
      timeout: "1h",
      on_timeout: "approve",
    },
    {
      ...by,
      id: "test_write",
      effect: "write",
      when: `${OUTCOME} in ["write", "write_refused", "write_uncertain"]`,
      request: { method: "POST", url: target("/writes"), json: { outcome: `{{ ${OUTCOME} }}` } },
    },
  ];
}

/** Conditions that say nothing of an account's own fields. */
const KEPT_CONDITIONS = ["$isValid", "$not($isValid)"];

function testOutput({ id, name, refKey, handles }: JsonObject): JsonObject {
  const from = "test_review";
  const kept = { id: id ?? "", type: "output", ...(name !== undefined && { name }), refKey: refKey ?? "" };
  if (!isJsonObject(handles)) return { ...kept, from };
  return {
    ...kept,
    handles: Object.fromEntries(
      Object.entries(handles).map(([handle, given]) => {
        const where = isJsonObject(given) ? textOf(given["where"]) : "";
        return [handle, { from, ...(KEPT_CONDITIONS.includes(where) && { where }) }];
      }),
    ),
  };
}
