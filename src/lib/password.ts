import { argon2, randomBytes, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { PasswordTurns, type PasswordTurn } from "./password-turns.ts";
import type { Secret } from "./secret.ts";

const derive = promisify(argon2);
/** OWASP's second set of parameters. A hash took 36 to 46 ms when measured. */
const PARAMETERS = { parallelism: 1, tagLength: 32, memory: 19_456, passes: 2 } as const;
const SALT_BYTES = 16;

/** The secret of argon2 (RFC 9106, 3.1): without it, hashes can be neither created nor verified. */
export type PasswordKey = Secret<Buffer>;

const encode = (bytes: Buffer): string => bytes.toString("base64").replaceAll("=", "");
/** The marker in a PHC string that a secret was used. */
const KEY_ID = encode(Buffer.from("signing-key"));

/** An argon2id hash in PHC form, with its parameters, so that they can change later. */
export async function hashPassword(password: string, key: PasswordKey): Promise<string> {
  const nonce = randomBytes(SALT_BYTES);
  const tag = await derive("argon2id", { message: password, nonce, secret: key.reveal(), ...PARAMETERS });
  return `${PREFIX}${encode(nonce)}$${encode(tag)}`;
}

const PREFIX = `$argon2id$v=19$m=${PARAMETERS.memory},t=${PARAMETERS.passes},p=${PARAMETERS.parallelism},keyid=${KEY_ID}$`;
const PHC =
  /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)(?:,keyid=([A-Za-z0-9+/]+))?\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/**
 * Compares in constant time. False for anything but our hashes. Hashes that were created before there was a key are accepted: the
 * signed row proves that this installation wrote them.
 */
export async function verifyPassword(password: string, hash: string, key: PasswordKey): Promise<boolean> {
  const match = PHC.exec(hash);
  if (!match || (match[4] !== undefined && match[4] !== KEY_ID)) return false;
  const wanted = Buffer.from(match[6] ?? "", "base64");
  const tag = await derive("argon2id", {
    message: password,
    nonce: Buffer.from(match[5] ?? "", "base64"),
    ...(match[4] === undefined ? {} : { secret: key.reveal() }),
    memory: Number(match[1]),
    passes: Number(match[2]),
    parallelism: Number(match[3]),
    tagLength: wanted.length,
  });
  return tag.length === wanted.length && timingSafeEqual(tag, wanted);
}

/** Whether a hash lacks the key or has older parameters: then it is replaced at the next sign-in. */
export function isOutdatedHash(hash: string): boolean {
  return !hash.startsWith(PREFIX);
}

/** Checks a process's passwords, a few at a time: each occupies 19 MiB and a thread. */
export class Passwords {
  readonly #turns = new PasswordTurns();
  #derived = 0;
  #dummy: Promise<string> | null = null;
  readonly #key: PasswordKey;

  constructor(key: PasswordKey) {
    this.#key = key;
  }

  /** Number of hashes derived so far: unknown names must cost as many as known ones. */
  get derived(): number {
    return this.#derived;
  }

  /** Whether a new caller would have to wait. */
  get isBusy(): boolean {
    return this.#turns.isBusy;
  }

  /** `hash` null: unknown name. The same work is done, and the result is false. Throws PasswordsBusy. */
  async verify(password: string, hash: string | null, turn: PasswordTurn): Promise<boolean> {
    this.#dummy ??= hashPassword("nobody has this password", this.#key);
    const expected = hash ?? (await this.#dummy);
    return (
      (await this.#inTurn(turn, async () => await verifyPassword(password, expected, this.#key))) &&
      hash !== null
    );
  }

  /** Throws PasswordsBusy. */
  async hash(password: string): Promise<string> {
    return await this.#inTurn("known", async () => await hashPassword(password, this.#key));
  }

  async #inTurn<T>(turn: PasswordTurn, work: () => Promise<T>): Promise<T> {
    return await this.#turns.take(turn, async () => {
      this.#derived++;
      return await work();
    });
  }
}
