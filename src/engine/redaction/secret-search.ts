import { decodeEscapes } from "./decode-escapes.ts";
import { base64Windows, findBase64 } from "./find-base64.ts";
import { BLOCK, BLOCK_BITS, findEncoded, HEX, placeOf, type Wanted } from "./find-encoded.ts";
import { makePatternSearch } from "./find-patterns.ts";
import { merged, type Cut } from "./cuts.ts";
import { formsWithin } from "./secret-forms.ts";

/**
 * Finds the secrets of a run in a target's text, however the target encoded them. The text is not compared with all forms of a secret;
 * it is decoded, and the secrets are searched in the result. One pass finds them unencoded: the last three bytes of a six-byte window
 * determine how far it can move without skipping a secret's beginning (Wu and Manber's shift table), so most bytes are never read,
 * however many secrets there are. Only at a possible beginning, a tree of the secrets with the same six bytes is walked. The same pass
 * over the text with its escapes decoded (`decode-escapes.ts`, which maps positions back) finds secrets in JSON, URLs, HTML and
 * scripts. Base64 and hexadecimal are decoded only where necessary: 24 bits of their characters are compared with the beginnings of
 * secrets (also escaped and encoded ones), and only on a match are the surroundings decoded and searched in the same way. For text
 * crafted to make the walks long, the first 32 bytes of a secret count as all of it.
 */
export interface SecretSearch {
  /** Values under six characters are ignored. `alone`: matches only without an adjacent letter or digit. */
  add(secret: string, alone?: boolean): void;
  /** Number of secrets. */
  readonly size: number;
  /** The maximum length of a match in any encoding, in bytes. */
  readonly reach: number;
  /** The matches in a UTF-8 text or any bytes, in order and without overlap. */
  find(bytes: Uint8Array): readonly Cut[];
}

/** Values under six characters can't be told from ordinary text (docs/decisions/0014). */
const SECRET_CHARACTERS_MIN = 6;

/** Encodings that are decoded inside another. */
const DEPTH = 2;
/** Bytes of the longest encoding of one byte, and of two nested ones. */
const ESCAPE_FACTOR = 6;
const REACH_FACTOR = 12;
const REACH_BYTES_MAX = 1_048_576;

export function makeSecretSearch({ ignoreCase = false } = {}): SecretSearch {
  // Most runs have no secret, and a search needs some hundred kilobytes of tables.
  let search: SecretSearch | null = null;
  return {
    add(secret, alone) {
      if (secret.length >= SECRET_CHARACTERS_MIN) (search ??= makeSearch(ignoreCase)).add(secret, alone);
    },
    get size() {
      return search?.size ?? 0;
    },
    get reach() {
      return search?.reach ?? 0;
    },
    find: (bytes) => search?.find(bytes) ?? [],
  };
}

function makeSearch(ignoreCase: boolean): SecretSearch {
  const patterns = makePatternSearch(ignoreCase);
  const seen = new Set<string>();
  const blocks = new Set<number>();
  const mayBlock = new Uint8Array(1 << BLOCK_BITS);
  const windows = base64Windows();
  let longestBytes = 0;

  const addBlocks = (form: Uint8Array): void => {
    for (let at = 0; at < BLOCK && at + BLOCK <= form.length; at++) {
      const block = ((form[at] ?? 0) << 16) | ((form[at + 1] ?? 0) << 8) | (form[at + 2] ?? 0);
      blocks.add(block);
      mayBlock[placeOf(block)] = 1;
    }
  };
  const find = (bytes: Uint8Array, depth: number): readonly Cut[] => {
    const found: Cut[] = [];
    patterns.scan(bytes, found);
    const decoded = decodeEscapes(bytes);
    const text = decoded?.bytes ?? bytes;
    const inner: Cut[] = decoded === null ? found : [];
    if (decoded !== null) patterns.scan(text, inner);
    if (depth > 0) {
      const wanted: Wanted = {
        formBytes: ESCAPE_FACTOR * longestBytes,
        find: (each) => find(each, depth - 1),
      };
      findBase64(text, windows, wanted, inner);
      findEncoded(text, HEX, { blocks, mayBlock }, wanted, inner);
    }
    if (decoded !== null)
      for (const { start, end } of inner)
        found.push({ start: decoded.origin(start), end: decoded.origin(end) });
    return merged(found);
  };

  return {
    add(secret, alone = false) {
      if (seen.has(`${alone} ${secret}`)) return;
      seen.add(`${alone} ${secret}`);
      const forms = formsWithin(secret);
      for (const pattern of forms.patterns) {
        longestBytes = Math.max(longestBytes, pattern.length);
        patterns.add(pattern, alone);
      }
      for (const form of forms.forms) {
        addBlocks(form);
        windows.add(form);
      }
    },
    get size() {
      return seen.size;
    },
    get reach() {
      return Math.min(REACH_FACTOR * longestBytes + 64, REACH_BYTES_MAX);
    },
    find: (bytes) => find(bytes, DEPTH),
  };
}
