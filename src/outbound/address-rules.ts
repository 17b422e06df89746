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

/** Which addresses may be connected to. */
export interface AddressRules {
  /** Why this address may not be connected to for this host and port; null if it may. */
  explainRefusal(address: string, host: string, port: number): string | null;
}

/** The ranges that an operator's `name:port` allows besides public addresses: never link-local, where cloud metadata services are. */
const PRIVATE_RANGES: ReadonlySet<string> = new Set([
  "loopback",
  "private",
  "carrierGradeNat",
  "uniqueLocal",
]);

/** Items of LATCHKEY_EGRESS_ALLOW, as returned by `parseEgressAllow`. Throws for an item that it would have rejected. */
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
      if (isDisguise(address)) return "its address is an IPv4 address embedded in IPv6";
      if (isPublic(address) || networks.some((network) => isWithin(address, network))) return null;
      if (endpoints.has(`${host}:${port}`) && (isLiteral(host) || PRIVATE_RANGES.has(address.range())))
        return null;
      return `its address is not public (${describe(address)}); the operator can allow it with LATCHKEY_EGRESS_ALLOW`;
    },
  };
}
