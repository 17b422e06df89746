import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import {
  formatPath,
  quote,
  sortProblems,
  type ConfigFinding,
  type ConfigProblem,
} from "#domain/config-problem.ts";
import { stampEdition } from "#domain/edition.ts";
import { suggestion } from "#domain/config-nearest.ts";
import type { Strategy } from "#domain/strategy.ts";
import { checkAccount } from "./check-account.ts";
import { checkBlueprint, type SlotStrategy } from "./check-blueprint.ts";
import { checkClientSecret, type KnownSecrets } from "./check-client-secret.ts";
import { checkStrategy } from "./check-strategy.ts";
import { readOrigins } from "./check-values.ts";
import { identifyDocument, type DocumentKind } from "./identify-document.ts";
import { warnOf } from "./warn-of.ts";
import type { SourceDocument } from "./read-documents.ts";

export interface KnownStrategy {
  readonly fieldKeys: readonly string[];
  readonly hosts: readonly string[];
  readonly loginType: string;
}

/** The service's documents; empty without a database (`latchkey validate`). */
export interface KnownConfig {
  /** Slugs. */
  readonly accounts: ReadonlySet<string>;
  /** By `<account>/<strategy id>`. */
  readonly strategies: ReadonlyMap<string, KnownStrategy>;
  readonly secrets: KnownSecrets;
  /** Logins in force that name a variable of the environment, by `<account>/<strategy id>`. */
  readonly variableLogins?: ReadonlyMap<string, Strategy["login"]>;
}

/** A valid document. */
export interface CheckedDocument {
  readonly kind: DocumentKind;
  /** Its account's slug (its own, for an account). */
  readonly account: string;
  /** A slug, a `strat_…`, or a Blueprint key. */
  readonly id: string;
  readonly document: JsonObject;
  /** The source text, including comments. */
  readonly text: string;
  readonly retired: boolean;
  /** Its warnings. */
  readonly warnings: readonly ConfigProblem[];
  readonly file: string;
  readonly line: number;
}

/** A document of the set, as far as it could be identified. */
interface Identified {
  readonly source: SourceDocument;
  readonly kind: DocumentKind | null;
  readonly id: string | null;
  readonly account: string | null;
  readonly findings: readonly ConfigFinding[];
}

/**
 * Checks a set of documents against each other and against the service's documents. Lists every problem of every document, by file and
 * line. `checked`: the valid documents, accounts first, then strategies, then Blueprints.
 */
export function checkConfig(
  documents: readonly SourceDocument[],
  known: KnownConfig,
): { readonly checked: readonly CheckedDocument[]; readonly problems: readonly ConfigProblem[] } {
  const set = documents.map(identify);
  const accounts = new Set([
    ...known.accounts,
    ...set.flatMap(({ kind, id }) => (kind === "account" && id !== null ? [id] : [])),
  ]);
  const strategies = collectStrategies(set, known);
  const repeated = findRepeated(set);
  const checked: CheckedDocument[] = [];
  const problems: ConfigProblem[] = [];
  for (const each of set) {
    const findings = [
      ...each.findings,
      ...(repeated.get(each) ?? []),
      ...checkAccountExists(each, accounts),
      ...checkKind(each, strategies.get(each.account ?? "") ?? new Map(), known),
    ];
    problems.push(...findings.map((finding) => locate(each.source, finding)));
    if (findings.length === 0 && each.kind !== null && each.id !== null && each.account !== null) {
      const { source, kind, id, account } = each;
      const retired = source.value["retired"] === true;
      checked.push({
        kind,
        account,
        id,
        document: stampEdition(source.value),
        text: source.text,
        retired,
        warnings: warnOf(kind, source.value).map((finding) => locate(source, finding)),
        file: source.file,
        line: source.position([]).line,
      });
    }
  }
  const rank: Record<DocumentKind, number> = { account: 0, strategy: 1, blueprint: 2 };
  return {
    checked: checked.toSorted((a, b) => rank[a.kind] - rank[b.kind]),
    problems: sortProblems(problems),
  };
}

const text = (value: Json | undefined): string | null => (typeof value === "string" ? value : null);

function identify(source: SourceDocument): Identified {
  const { kind, findings } = identifyDocument(source.value);
  const id = kind === null ? null : text(source.value[kind]);
  return { source, kind, id, account: text(source.value["account"]), findings };
}

function checkKind(
  { kind, id, account, source }: Identified,
  strategies: ReadonlyMap<string, SlotStrategy>,
  { secrets, variableLogins }: KnownConfig,
): readonly ConfigFinding[] {
  switch (kind) {
    case "account":
      return checkAccount(source.value);
    case "strategy":
      return [
        ...checkStrategy(source.value).filter(
          ({ path }) =>
            path.join(".") !== "login.client_secret_env" ||
            !isSameLogin(source.value, variableLogins?.get(`${account ?? ""}/${id ?? ""}`)),
        ),
        ...checkClientSecret(source.value, account ?? "", secrets),
      ];
    case "blueprint":
      return checkBlueprint(source.value, strategies);
    case null:
      return [];
  }
}

/**
 * A current login that names a variable keeps working until the variable is imported: until then, other parts of its strategy can
 * be changed, and it can be retired.
 */
function isSameLogin({ login }: JsonObject, inForce: Strategy["login"] | undefined): boolean {
  if (!isJsonObject(login)) return false;
  const { cache: _cache, lockout: _lockout, ...rest } = login;
  return isDeepStrictEqual(rest, inForce);
}

/** By account, then by id. A document of the set replaces the service's, even if it is invalid elsewhere. */
function collectStrategies(
  set: readonly Identified[],
  known: KnownConfig,
): ReadonlyMap<string, ReadonlyMap<string, SlotStrategy>> {
  const strategies = new Map<string, Map<string, SlotStrategy>>();
  const put = (account: string, id: string, strategy: SlotStrategy) => {
    const ofAccount = strategies.get(account) ?? new Map<string, SlotStrategy>();
    strategies.set(account, ofAccount.set(id, strategy));
  };
  for (const [key, { hosts }] of known.strategies) {
    const slash = key.indexOf("/");
    put(key.slice(0, slash), key.slice(slash + 1), { hosts });
  }
  for (const { kind, id, account, source } of set) {
    if (kind !== "strategy" || id === null || account === null) continue;
    put(account, id, { hosts: readHosts(source.value) });
  }
  return strategies;
}

/** null when a host could not be read: then no URL can be checked against the hosts. */
function readHosts({ hosts, login }: JsonObject): readonly string[] | null {
  const read = readOrigins(hosts);
  if (hosts === undefined) return isJsonObject(login) && login["type"] === "none" ? [] : null;
  return Array.isArray(hosts) && hosts.length === read.length ? read : null;
}

function checkAccountExists(
  { kind, account }: Identified,
  accounts: ReadonlySet<string>,
): readonly ConfigFinding[] {
  if (kind === null || kind === "account" || account === null || accounts.has(account)) return [];
  const remedy =
    accounts.size > 0
      ? suggestion(account, accounts, "there are")
      : "; add its document (`account: …`) to the files";
  return [{ path: ["account"], message: `there is no account ${quote(account)}${remedy}` }];
}

/** Ids are unique within their account. */
function findRepeated(set: readonly Identified[]): ReadonlyMap<Identified, readonly ConfigFinding[]> {
  const first = new Map<string, Identified>();
  const repeated = new Map<Identified, readonly ConfigFinding[]>();
  for (const each of set) {
    const { kind, id, account } = each;
    if (kind === null || id === null) continue;
    const key = JSON.stringify([kind, kind === "account" ? null : account, id]);
    const before = first.get(key);
    if (before === undefined) {
      first.set(key, each);
      continue;
    }
    const place = `${before.source.file}:${before.source.position([kind], "key").line}`;
    repeated.set(each, [
      {
        path: [kind],
        message: `the ${kind} ${quote(id)} is defined at ${place} already; remove one of the two`,
      },
    ]);
  }
  return repeated;
}

function locate(source: SourceDocument, { path, at, message }: ConfigFinding): ConfigProblem {
  return { file: source.file, ...source.position(path, at), path: formatPath(path), message };
}
