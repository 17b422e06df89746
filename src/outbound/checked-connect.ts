import { lookup } from "node:dns/promises";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { callbackify } from "node:util";
import { buildConnector } from "undici";
import { areFailpointsArmed, failpoint } from "#lib/failpoint.ts";
import type { AddressRules } from "./address-rules.ts";
import { bareHost } from "./addresses.ts";
import { GateError } from "./gate-error.ts";

/** All addresses of a name. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

/** The client certificate for the TLS handshake. PEM; the key is secret. */
export interface ClientCertificate {
  readonly certificate: string;
  readonly key: string;
}

const CONNECT_MS = 10_000;

const underWay = new Map<string, Promise<readonly string[]>>();

/**
 * One question for a name at a time, whose answer all who wait for it get: a look-up takes one of the process's few threads until it is
 * answered, and files are read and written by the same ones.
 */
export const resolveBySystem: Resolve = async (hostname) => {
  const known = underWay.get(hostname);
  if (known !== undefined) return await known;
  const asked = lookup(hostname, { all: true })
    .then((found) => found.map(({ address }) => address))
    .finally(() => underWay.delete(hostname));
  underWay.set(hostname, asked);
  return await asked;
};

/**
 * Connects to one origin. Each connection resolves the name once, checks all its addresses, and connects to exactly those: there
 * is no second look-up that could return others (docs/decisions/0015). TLS still uses the name (SNI, certificate).
 */
export function checkedConnect(
  origin: URL,
  rules: AddressRules,
  resolve: Resolve,
  certificate: ClientCertificate | null,
): buildConnector.connector {
  const host = bareHost(origin.hostname);
  const port = Number(origin.port) || (origin.protocol === "https:" ? 443 : 80);
  const refusalOf = (address: string): GateError | null => {
    const reason = rules.explainRefusal(address, origin.hostname, port);
    return reason === null ? null : new GateError("refused", `${origin.host} refused: ${reason}`);
  };
  const checkedLookup: LookupFunction = (hostname, options, callback) => {
    const answer = (error: Error | null, addresses: readonly string[]): void => {
      const list = addresses.map((address) => ({ address, family: isIP(address) }));
      if (options.all === true) callback(error, list);
      else callback(error, list[0]?.address ?? "", list[0]?.family);
    };
    const resolved = resolve(hostname).then(async (addresses) => {
      await failpoint("gate.after_lookup");
      return addresses;
    });
    resolved.then(
      (addresses) => {
        // One forbidden address is enough: a name with a public and a loopback address is an attack or a mistake.
        const refusal = addresses.map(refusalOf).find((each) => each !== null);
        if (refusal !== undefined) answer(refusal, []);
        else if (addresses.length === 0)
          answer(new GateError("unreachable", `${origin.host} has no address`), []);
        else answer(null, addresses);
      },
      (error: unknown) => answer(error instanceof Error ? error : new Error("the look-up failed"), []),
    );
  };
  const dial = buildConnector({
    timeout: CONNECT_MS,
    allowH2: false,
    autoSelectFamily: true,
    // NODE_TLS_REJECT_UNAUTHORIZED=0, perhaps set for another program, must not make us send credentials to an unverified host.
    rejectUnauthorized: true,
    lookup: checkedLookup,
    ...(certificate && { cert: certificate.certificate, key: certificate.key }),
  });
  const dialByPoints = callbackify(async (options: buildConnector.Options): Promise<Socket> => {
    await failpoint("gate.before_dial");
    const socket = await new Promise<Socket>((resolve, reject) => {
      dial(options, (error, made) =>
        made === null ? reject(error ?? new Error("no socket")) : resolve(made),
      );
    });
    await failpoint("gate.after_dial");
    return socket;
  });
  return (options, callback) => {
    // docs/decisions/0015: the look-up is not called for literal addresses.
    const refusal = isIP(host) === 0 ? null : refusalOf(host);
    if (refusal !== null) queueMicrotask(() => callback(refusal, null));
    else if (!areFailpointsArmed()) dial(options, callback);
    else
      dialByPoints(options, (error, socket) =>
        callback(...(error ? ([error, null] as const) : ([null, socket] as const))),
      );
  };
}
