import { isIP } from "node:net";
import {
  describe,
  isDisguise,
  isLiteral,
  isPublic,
  isWithin,
  parseAddress,
  type Network,
} from "./addresses.ts";
import { readAllowItem } from "./egress-allow.ts";

/** Which addresses may be dialled. */
export interface AddressRules {
  /** Why this address may not be dialled for this host and port, or null when it may. */
  explainRefusal(address: string, host: string, port: number): string | null;
}

/** What a `name:port` of the operator opens, besides public addresses: never link-local, where cloud metadata lives. */
const PRIVATE_RANGES: ReadonlySet<string> = new Set([
  "loopback",
  "private",
  "carrierGradeNat",
  "uniqueLocal",
]);

/** Items of LATCHKEY_EGRESS_ALLOW, as `parseEgressAllow` gives them. Throws on one that it would have refused. */
export function addressRules(items: readonly string[]): AddressRules {
  const networks: Network[] = [];
  const endpoints = new Set<string>();
  for (const item of items) {
    const read = readAllowItem(item);
    if (read.kind === "problem") throw new Error(read.problem);
    if (read.kind === "network") networks.push(read.network);
    else endpoints.add(read.endpoint);
  }
  return {
    explainRefusal(text, host, port) {
      if (isIP(text) === 0) return "its name has no IP address";
      const address = parseAddress(text);
      if (isDisguise(address)) return "its address hides an IPv4 address in IPv6";
      if (isPublic(address) || networks.some((network) => isWithin(address, network))) return null;
      if (endpoints.has(`${host}:${port}`) && (isLiteral(host) || PRIVATE_RANGES.has(address.range())))
        return null;
      return `its address is not public (${describe(address)}); the operator can allow it with LATCHKEY_EGRESS_ALLOW`;
    },
  };
}
