import { bareHost, isDisguise, isLiteral, isPublic, parseAddress } from "./addresses.ts";

/**
 * Names that the public DNS does not have: RFC 6761 (`localhost`, `test`, `invalid`, `example`), RFC 6762 (`local`), RFC 8375
 * (`home.arpa`), and `internal`, which ICANN keeps free for private use.
 */
const PRIVATE_NAMES = /(^|\.)(localhost|test|invalid|example|local|internal|home\.arpa)$/;

/**
 * Whether what is sent to a URL goes over the internet in the clear: `http:`, and a public address or a name that the public DNS may
 * have. A name without a dot is of the local network. Nothing is looked up: an internal name of a public domain counts as public.
 */
export function isPlainPublic(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  if (protocol !== "http:") return false;
  if (isLiteral(hostname)) {
    const address = parseAddress(bareHost(hostname));
    return isPublic(address) && !isDisguise(address);
  }
  const name = hostname.replace(/\.$/, "");
  return name.includes(".") && !PRIVATE_NAMES.test(name);
}
