import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { explainIssue } from "#domain/form-issue.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { quote } from "#domain/config-problem.ts";
import { readClientCertificate, type ReadCertificate } from "#strategies/client-certificate.ts";
import { LoginFailure, type ConfigFinding } from "#strategies/define-login.ts";
import { checkFieldKey, checkFieldOfType } from "#strategies/login-headers.ts";
import { readConfig } from "#domain/read-config.ts";
import { withCheck } from "#strategies/http/with-check.ts";

const schema = Type.Object(
  {
    certificate: Type.String({
      minLength: 1,
      description: "The key of the `file` field that holds the certificate, in PEM form.",
    }),
    key: Type.String({
      minLength: 1,
      description: "The key of the `file` field that holds its private key; both may be in one file.",
    }),
    passphrase: Type.Optional(
      Type.String({
        minLength: 1,
        description: "The key of the field that holds the private key's passphrase.",
      }),
    ),
  },
  { additionalProperties: false },
);

/** docs/logins/mtls.md. */
export const login = withCheck({
  type: "mtls",
  description: "A client certificate that is presented when connecting to the strategy's hosts.",
  schema,
  check(config, strategy) {
    if (!matchesSchema(schema, config)) return [];
    return [
      ...checkFieldOfType(config.certificate, "file", ["certificate"], strategy),
      ...checkFieldOfType(config.key, "file", ["key"], strategy),
      ...(config.passphrase === undefined
        ? []
        : checkFieldKey(config.passphrase, ["passphrase"], strategy.fieldKeys)),
      ...checkHosts(strategy.hosts),
    ];
  },
  checkSubmitted(config, values) {
    const read = readConfig(schema, config);
    // Optional fields that were left empty: the login fails if it needs them.
    if (!values.has(read.certificate) || !values.has(read.key)) return new Map();
    const answer = readFields(read, (key) => values.get(key));
    return new Map(answer.ok ? [] : [[read[answer.part] ?? read.key, answer.issue]]);
  },
  login(context, config) {
    const read = readConfig(schema, config);
    const answer = readFields(read, (key) => context.field(key));
    if (!answer.ok) {
      const field = read[answer.part] ?? read.key;
      throw new LoginFailure(`login (mtls): the field ${field}: ${explainIssue(answer.issue, field)}`);
    }
    const { certificate, key } = answer;
    return Promise.resolve({ headers: {}, cookies: null, certificate: { certificate, key } });
  },
});

function readFields(
  config: Static<typeof schema>,
  field: (key: string) => string | undefined,
): ReadCertificate {
  const texts = {
    certificate: field(config.certificate) ?? "",
    key: field(config.key) ?? "",
    passphrase: config.passphrase === undefined ? undefined : field(config.passphrase),
  };
  return readClientCertificate(texts, Date.now());
}

function checkHosts(hosts: readonly string[]): readonly ConfigFinding[] {
  const plain = hosts.find((host) => host.startsWith("http:"));
  if (plain === undefined) return [];
  const message = `the host ${quote(plain)} is not https; client certificates require TLS`;
  return [{ path: [], message }];
}
