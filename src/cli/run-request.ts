import { createReadStream, readFileSync, statSync } from "node:fs";
import { basename } from "node:path";
import { openYaml } from "#actions/config/open-yaml.ts";
import type { Blueprint, BlueprintNode } from "#domain/blueprint.ts";
import { suggestion } from "#domain/config-nearest.ts";
import { explainIssue } from "#domain/form-issue.ts";
import { checkFormValues } from "#domain/form-values.ts";
import { headerRows } from "#domain/header-rows.ts";
import { isJsonObject, type Json } from "#domain/json.ts";
import type { Strategy } from "#domain/strategy.ts";
import type { Value } from "#domain/value.ts";
import { Secret } from "#lib/secret.ts";
import { refKeyOf } from "#nodes/define-node.ts";
import { checkInput } from "#nodes/types/input.ts";
import { grantOf } from "#strategies/oauth/oauth-schema.ts";
import { readOAuthConfig } from "#strategies/oauth/oauth-server.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, EXIT_CODES } from "./output.ts";

const usage = (message: string): CommandFailed => new CommandFailed(message, EXIT_CODES.usage);

/** Parses `name=value` options. */
export function readPairs(option: string, pairs: readonly string[]): ReadonlyMap<string, string> {
  const read = new Map<string, string>();
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at <= 0) throw usage(`--${option} must be name=value, not ${JSON.stringify(pair)}.`);
    const name = pair.slice(0, at);
    if (read.has(name)) throw usage(`--${option} ${name} is given twice.`);
    read.set(name, pair.slice(at + 1));
  }
  return read;
}

/** The INPUTs, validated as in a trigger. `recorded`: texts of a recording, used where no value is given. */
export function readInputs(
  { nodes }: Blueprint,
  given: ReadonlyMap<string, string>,
  recorded: Readonly<Record<string, string>>,
): ReadonlyMap<string, Value> {
  const inputs = nodes.filter(({ type }) => type === "input");
  const refKeys = inputs.map((node) => refKeyOf(node));
  const values = new Map<string, Value>();
  for (const [refKey, text] of Object.entries(recorded))
    if (refKeys.includes(refKey)) values.set(refKey, { form: "text", text });
  for (const [refKey, written] of given) {
    const node = inputs.find((each) => refKeyOf(each) === refKey);
    if (node === undefined)
      throw usage(`No INPUT has the refKey ${refKey}${suggestion(refKey, refKeys, "there are")}.`);
    values.set(
      refKey,
      written.startsWith("@") ? readFileInput(node, written.slice(1)) : { form: "text", text: written },
    );
  }
  const problems = inputs.flatMap((node) =>
    checkInput(node.config, values.get(refKeyOf(node)) ?? { form: "absent" }).map(
      ({ message }) => `${message} Give it with --input ${refKeyOf(node)}=… or =@file.`,
    ),
  );
  if (problems.length > 0) throw usage(problems.join("\n"));
  return values;
}

/** Passes the file as text where the INPUT takes text, otherwise as an uploaded file. */
function readFileInput({ config }: BlueprintNode, path: string): Value {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found?.isFile()) throw usage(`--input: ${path} is not a file.`);
  const { accepts } = config;
  if (accepts === "text" || accepts === "json" || config["schema"] !== undefined)
    return { form: "text", text: readFileSync(path, "utf8") };
  return {
    form: "file",
    filename: basename(path),
    contentType: null,
    sizeBytes: found.size,
    open: () => createReadStream(path) as AsyncIterable<Uint8Array>,
  };
}

export function readMetadata(
  { metadata }: Blueprint,
  given: ReadonlyMap<string, string>,
  recorded: Readonly<Record<string, Json>>,
): { readonly [name: string]: Json } {
  const names = metadata.map(({ name }) => name);
  const unknown = [...given.keys()].find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw usage(`No metadata item has the name ${unknown}${suggestion(unknown, names, "there are")}.`);
  const values = { ...recorded, ...Object.fromEntries(given) };
  const missing = metadata.filter(({ name, required }) => required && values[name] === undefined);
  if (missing.length > 0)
    throw usage(
      missing.map(({ name }) => `The metadata item ${name} is required: --metadata ${name}=…`).join("\n"),
    );
  return values;
}

/** The fields of a slot's credential, from a YAML file or the environment, validated as in the hosted form. */
export function readCredential(
  slot: string,
  strategy: Strategy,
  from: string | undefined,
  environment: Composition["environmentSecret"],
): Secret<ReadonlyMap<string, string>> {
  const variable = (key: string): string => variableOf(slot, key);
  if (from === undefined && strategy.fields.some(({ required }) => required))
    throw usage(
      `The slot ${slot} needs a credential of ${strategy.id}: --credential ${slot}=fields.yaml, a file with ` +
        `${strategy.fields.map(({ key }) => `\`${key}: …\``).join(", ")}; or --credential ${slot}=env, with ` +
        `${strategy.fields.map(({ key }) => variable(key)).join(", ")} in the environment.`,
    );
  const submitted =
    from === "env"
      ? new Map(
          strategy.fields.flatMap(({ key }) => {
            const value = environment(variable(key));
            return value === null ? [] : [[key, value.reveal()] as const];
          }),
        )
      : readFieldsFile(strategy, from);
  const { values, errors } = checkFormValues(strategy.fields, submitted);
  if (errors.size > 0)
    throw usage(
      [...errors].map(([key, issue]) => `--credential ${slot}: ${explainIssue(issue, key)}`).join("\n"),
    );
  return new Secret(values);
}

const variableOf = (slot: string, key: string): string =>
  `CREDENTIAL_${slot}_${key}`.toUpperCase().replaceAll("-", "_");

/** For a login on the target's own pages, which can't happen here: an access token that the author got elsewhere. */
export function readAccessToken(
  slot: string,
  strategy: Strategy,
  environment: Composition["environmentSecret"],
): Secret | null {
  if (strategy.login.type !== "oauth2" || grantOf(readOAuthConfig(strategy)) !== "authorization_code")
    return null;
  const variable = variableOf(slot, "access_token");
  const token = environment(variable);
  if (token === null)
    throw usage(
      `The slot ${slot}: ${strategy.id} uses a sign-in on the target's own pages, which a local run can't do. Set ${variable} to an ` +
        "access token of a test account; it is used as it is, and not renewed.",
    );
  return token;
}

/** No message quotes the file's content. */
function readFieldsFile(strategy: Strategy, path: string | undefined): ReadonlyMap<string, string> {
  if (path === undefined) return new Map();
  let parsed: unknown;
  try {
    parsed = openYaml().parse(readFileSync(path, "utf8"), { schema: "failsafe", logLevel: "error" });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw usage(`--credential: ${path} ${code === "ENOENT" ? "does not exist" : "is not valid YAML"}.`);
  }
  if (!isJsonObject(parsed)) throw usage(`--credential: ${path} must have the fields as keys.`);
  const keys = strategy.fields.map(({ key }) => key);
  return new Map(
    Object.entries(parsed).flatMap(([key, value]): (readonly [string, string])[] => {
      if (!keys.includes(key))
        throw usage(
          `--credential: ${path}: ${strategy.id} has no field ${key}${suggestion(key, keys, "it has")}.`,
        );
      if (typeof value === "string") return [[key, value]];
      if (!isJsonObject(value)) throw usage(`--credential: ${path}: ${key} must be a string.`);
      // A field of type `headers`: in the form of the hosted form's rows.
      const rows = headerRows(key);
      return Object.entries(value).flatMap(([name, text], index) => {
        const row = rows[index];
        return row === undefined || typeof text !== "string"
          ? []
          : [
              [row.name, name],
              [row.value, text],
            ];
      });
    }),
  );
}
