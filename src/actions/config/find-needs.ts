import { isDeepStrictEqual } from "node:util";
import { countCredentialsOf } from "#db/credentials/credential-binding.ts";
import type { Database } from "#db/connection/pool.ts";
import type { TwoPersonRule } from "#db/operators/two-person-rules.ts";
import { readTwoPerson } from "#domain/account.ts";
import { isJsonObject, texts, type JsonObject } from "#domain/json.ts";
import type { Need } from "#domain/proposal.ts";
import { isSecretField, readStrategy } from "#domain/strategy.ts";
import { credentialOrigins } from "#strategies/registry.ts";
import type { CheckedDocument } from "./check-config.ts";

/** A document of a plan. */
interface Step {
  readonly change: string;
  readonly checked: CheckedDocument;
  /** The current document as JSON; undefined: there is none. */
  readonly before: string | undefined;
  /** Something is in force that this installation has not written. */
  readonly isRefused: boolean;
}

/**
 * The reasons why a set of documents needs two admins; empty: it doesn't. `rules`: by slug, before the set is applied. A
 * strategy's first version needs only one admin as long as no credential is connected. A Blueprint's first version with hosts
 * needs two; otherwise the rule could be circumvented with a new key.
 */
export async function findNeeds(
  db: Database,
  steps: readonly Step[],
  rules: ReadonlyMap<string, TwoPersonRule>,
): Promise<readonly Need[]> {
  const needs: Need[] = [];
  for (const step of steps) {
    const { kind, account } = step.checked;
    if (step.change === "unchanged" || (rules.get(account) ?? "off") === "off") continue;
    if (kind === "account") needs.push(...needsOfAccount(step));
    else if (kind === "strategy") needs.push(...(await needsOfStrategy(db, step)));
    else needs.push(...needsOfBlueprint(step));
  }
  return needs;
}

const nameOf = ({ checked: { kind, account, id } }: Step) => ({ kind, account, id });

function needsOfAccount(step: Step): readonly Need[] {
  if (readTwoPerson(step.checked.document)) return [];
  return [{ ...nameOf(step), why: "turned_off", origins: [], credentials: 0 }];
}

async function needsOfStrategy(db: Database, step: Step): Promise<readonly Need[]> {
  const { before, checked, isRefused } = step;
  const credentials = await countCredentialsOf(db, { account: checked.account, strategyId: checked.id });
  if (before === undefined && !isRefused && credentials === 0) return [];
  const name = { ...nameOf(step), credentials };
  const was = before === undefined ? null : (JSON.parse(before) as JsonObject);
  const added = addedTo(
    was === null ? [] : credentialOrigins(readStrategy(was)),
    credentialOrigins(readStrategy(checked.document)),
  );
  if (was === null) return [{ ...name, why: "unverified", origins: added }];
  return [
    ...(added.length === 0 ? [] : [{ ...name, why: "origins", origins: added } as const]),
    ...(isDeepStrictEqual(loginOf(was), loginOf(checked.document))
      ? []
      : [{ ...name, why: "login", origins: [] } as const]),
  ];
}

/** The parts that decide what is sent and what counts as secret, without labels and help texts. */
function loginOf({ login, fields }: JsonObject): unknown {
  const given = (Array.isArray(fields) ? fields : []).filter(isJsonObject);
  return [
    login ?? null,
    given.map((field) => [field["key"] ?? null, field["type"] ?? null, isSecretField(field)]),
  ];
}

function needsOfBlueprint(step: Step): readonly Need[] {
  const { before, checked, isRefused } = step;
  const hostsOf = ({ hosts }: JsonObject) => texts(hosts).map((host) => new URL(host).origin);
  const added = addedTo(
    before === undefined ? [] : hostsOf(JSON.parse(before) as JsonObject),
    hostsOf(checked.document),
  );
  if (added.length === 0) return [];
  const why = before === undefined && isRefused ? "unverified" : "origins";
  return [{ ...nameOf(step), why, origins: added, credentials: 0 }];
}

const addedTo = (before: readonly string[], after: readonly string[]): readonly string[] =>
  after.filter((origin) => !before.includes(origin));
