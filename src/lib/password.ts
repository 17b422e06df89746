import { argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";

const derive = promisify(argon2);
/** OWASP's second choice of parameters; 36 to 46 ms on the machine they were measured on (design, page 7, 0.3). */
const PARAMETERS = { parallelism: 1, tagLength: 32, memory: 19_456, passes: 2 } as const;
const SALT_BYTES = 16;

/** An argon2id hash in PHC form, with its parameters, so that they can change later. */
export async function hashPassword(password: string): Promise<string> {
  const nonce = randomBytes(SALT_BYTES);
  const tag = await derive("argon2id", { message: password, nonce, ...PARAMETERS });
  const { memory, passes, parallelism } = PARAMETERS;
  const encode = (bytes: Buffer): string => bytes.toString("base64").replaceAll("=", "");
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${encode(nonce)}$${encode(tag)}`;
}

/** In constant time for hashes of one length. False for a text that is no hash of ours. */
export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/.exec(hash);
  if (!match) return false;
  const wanted = Buffer.from(match[5] ?? "", "base64");
  const tag = await derive("argon2id", {
    message: password,
    nonce: Buffer.from(match[4] ?? "", "base64"),
    memory: Number(match[1]),
    passes: Number(match[2]),
    parallelism: Number(match[3]),
    tagLength: wanted.length,
  });
  return tag.length === wanted.length && timingSafeEqual(tag, wanted);
}
