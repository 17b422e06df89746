import { bareHost, isDisguise, isLiteral, isPublic, parseAddress } from "./addresses.ts";

/**
 * Names that are not in the public DNS: RFC 6761 (`localhost`, `test`, `invalid`, `example`), RFC 6762 (`local`), RFC 8375
 * (`home.arpa`), and `internal`, which ICANN reserves for private use.
 */
const PRIVATE_NAMES = /(^|\.)(localhost|test|invalid|example|local|internal|home\.arpa)$/;

/**
 * Whether a request to a URL crosses the internet unencrypted: `http:` with a public address or a name that may be in the public
 * DNS. A name without a dot is a local one. Nothing is resolved, so an internal name in a public domain counts as public.
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
