import { createHash, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { ExplainedError } from "./explained-error.ts";
import { operatorTokenOf } from "./api-key.ts";
import { openAuditKeys, type AuditKeys } from "./audit-keys.ts";
import { openHmac, type Hmac } from "./hmac.ts";
import { readableOf } from "./new-id.ts";
import { openRowKeys, type RowKeys } from "./row-keys.ts";
import { Secret } from "./secret.ts";

/** The root of all HMACs; every role has it. docs/decisions/0013. */
export type SigningKey = Secret<Buffer>;

/** An invalid key text. The message has the remedy and never contains part of the text. */
export class SigningKeyError extends ExplainedError {}

const PREFIX = "lks_";
const KEY_BYTES = 32;
const CHECKSUM_BYTES = 4;

const checksum = (key: Buffer): Buffer =>
  createHash("sha256").update("latchkey signing key\0").update(key).digest().subarray(0, CHECKSUM_BYTES);

/** Generates a key in the form of its file: `lks_` followed by 32 random bytes and a four-byte checksum as base64url. */
export function generateSigningKey(): string {
  const key = randomBytes(KEY_BYTES);
  return PREFIX + Buffer.concat([key, checksum(key)]).toString("base64url");
}

/** Reads what `generateSigningKey` made. Throws SigningKeyError. */
export function readSigningKey(text: string): SigningKey {
  const trimmed = text.trim();
  if (trimmed === "")
    throw new SigningKeyError("The signing key is empty. Restore its file from your backup.");
  if (trimmed.startsWith("{"))
    throw new SigningKeyError(
      "This is a master key, not a signing key. Check that the two were not swapped.",
    );
  if (!trimmed.startsWith(PREFIX))
    throw new SigningKeyError(`This is not a signing key: signing keys begin with ${PREFIX}.`);
  const encoded = trimmed.slice(PREFIX.length);
  const bytes = Buffer.from(encoded, "base64url");
  const key = bytes.subarray(0, KEY_BYTES);
  const whole = bytes.length === KEY_BYTES + CHECKSUM_BYTES && bytes.toString("base64url") === encoded;
  if (!whole || !checksum(key).equals(bytes.subarray(KEY_BYTES))) {
    throw new SigningKeyError(
      "The signing key is truncated or mistyped: its checksum is wrong. Restore it from your backup.",
    );
  }
  return new Secret(key);
}

/** The subject of a presigned download URL. docs/decisions/0029. */
export interface PresignedParts {
  readonly accountId: string;
  readonly runId: string;
  /** The output's key in the run's results. */
  readonly key: string;
  readonly expiresAtMs: number;
}

/** All values derived from the signing key, with a separate key for each purpose. */
export interface Signing {
  /** A fingerprint of the key. */
  fingerprint(): Buffer;
  /** The hash of an API key in the database. */
  apiKeyHash(apiKey: string): Buffer;
  /** The token of a session's `hosted_url`: 256 bits, always the same for one session, never stored. */
  hostedToken(sessionId: string): string;
  /** The client token with which a page opens an embedded session: 256 bits, always the same for one session, never stored. */
  clientToken(embeddedSessionId: string): string;
  verifyClientToken(embeddedSessionId: string, token: string): boolean;
  /** The hash by which the database finds a session. It can't be used to create or open a link. */
  tokenLookup(token: string): Buffer;
  /** A URL-safe signature. The caller checks the expiry by the database's clock. */
  presign(parts: PresignedParts): string;
  verifyPresigned(parts: PresignedParts, signature: string): boolean;
  /** A fresh value for one rendered form, bound to the hosted token. Needs no cookie. */
  csrf(token: string, nowMs: number): string;
  /** The cookie of a browser that was redirected to a target's login with this `state`. */
  oauthCookie(state: string): string;
  verifyOAuthCookie(state: string, value: string): boolean;
  /** Proves that a window may be redirected to this URL, for this embedded session and `state`. */
  departure(parts: readonly string[]): string;
  verifyDeparture(parts: readonly string[], value: string): boolean;
  /** RFC 7636: 256 bits, always the same for one `state`, never stored. */
  oauthVerifier(state: string): string;
  /** Encrypts the data that a browser with this `state` returns to. */
  oauthFormKey(state: string): Secret<Buffer>;
  /** Encrypts a callback's data that is handed from one process to another. */
  oauthAnswerKey(stateHash: Uint8Array): Secret<Buffer>;
  /** Whether the value was made for this token, at most `lifetimeMs` ago. */
  verifyCsrf(
    token: string,
    value: string,
    at: { readonly nowMs: number; readonly lifetimeMs: number },
  ): boolean;
  /** The keyed hash for handles (`engine/redaction/handles.ts`): 64 hexadecimal digits. */
  runHandle(parts: readonly string[]): string;
  /** By which the tries of a login name are counted: without the key, nobody can tell whose they are. */
  loginName(parts: readonly string[]): string;
  /** Proves that this installation bound existing credentials to their origins, at this time. */
  boundMark(atMs: number): Buffer;
  verifyBoundMark(atMs: number, mark: Uint8Array): boolean;
  /** Proves that this installation made a backup. */
  readonly backupMac: Hmac;
  readonly operators: OperatorKeys;
  readonly audit: AuditKeys;
  /** The key for signed rows. */
  readonly rows: RowKeys;
}

/** Values for operators' sign-in. They can't be read from the database. */
export interface OperatorKeys {
  /** The hash of a session's cookie in the database. */
  sessionHash(token: string): Buffer;
  /** The hash of an operator token in the database. */
  tokenHash(token: string): Buffer;
  /** The hash of a device code in the database. */
  deviceHash(deviceCode: string): Buffer;
  /** The code that a person compares, without its hyphen: eight characters, always the same for one hash. */
  deviceUserCode(deviceHash: Uint8Array): string;
  /** The operator token of an approved device sign-in: always the same for one hash, never stored. */
  deviceToken(deviceHash: Uint8Array): string;
  /** The CSRF token of a session. */
  csrf(token: string): string;
  verifyCsrf(token: string, value: string): boolean;
  /** The 160-bit key for an authenticator app, never stored. */
  totpKey(operatorId: string, nonce: Uint8Array): Buffer;
  recoveryHash(operatorId: string, code: string): Buffer;
  /** The secret of argon2: a reader of the database can't try passwords, and a writer can't forge a hash. */
  readonly passwordKey: Secret<Buffer>;
  /** The name of a counter of attempts. */
  nameHash(name: string): Buffer;
  /** The cookie of a browser in which an operator has signed in. */
  knownBrowser(nameKey: string, nonce: string): string;
  verifyKnownBrowser(nameKey: string, nonce: string, value: string): boolean;
  /** The cookie of a browser that was redirected to the provider with this `state`. */
  oidcCookie(state: string): string;
  verifyOidcCookie(state: string, value: string): boolean;
  /** RFC 7636, and OpenID Connect's `nonce`: 256 bits each, always the same for one `state`, never stored. */
  oidcVerifier(state: string): string;
  oidcNonce(state: string): string;
}

/** 40 bits, for ten minutes, and only for signed-in operators (RFC 8628, 5.1). */
const USER_CODE_CHARACTERS = 8;

function openOperatorKeys(derive: (purpose: string) => Buffer): OperatorKeys {
  const hmac = (purpose: string): Hmac => openHmac(derive(purpose));
  const keys = {
    session: hmac("operator-session"),
    token: hmac("operator-token"),
    device: hmac("operator-device"),
    deviceUserCode: hmac("operator-device-user-code"),
    deviceToken: hmac("operator-device-token"),
    csrf: hmac("operator-csrf"),
    totp: hmac("operator-totp"),
    recovery: hmac("operator-recovery"),
    name: hmac("operator-name"),
    knownBrowser: hmac("operator-known-browser"),
    oidcCookie: hmac("operator-oidc-cookie"),
    oidcVerifier: hmac("operator-oidc-verifier"),
    oidcNonce: hmac("operator-oidc-nonce"),
  };
  const bytes = (key: Hmac, parts: readonly string[]): Buffer => key(JSON.stringify(parts));
  return {
    sessionHash: (token) => bytes(keys.session, [token]),
    tokenHash: (token) => bytes(keys.token, [token]),
    deviceHash: (deviceCode) => bytes(keys.device, [deviceCode]),
    deviceUserCode: (deviceHash) => readableOf(keys.deviceUserCode(deviceHash), USER_CODE_CHARACTERS),
    deviceToken: (deviceHash) => operatorTokenOf(keys.deviceToken(deviceHash)),
    csrf: (token) => mac(keys.csrf, [token]),
    verifyCsrf: (token, value) => isSame(mac(keys.csrf, [token]), value),
    totpKey: (operatorId, nonce) =>
      bytes(keys.totp, [operatorId, Buffer.from(nonce).toString("hex")]).subarray(0, TOTP_KEY_BYTES),
    recoveryHash: (operatorId, code) => bytes(keys.recovery, [operatorId, code]),
    passwordKey: new Secret(derive("operator-password")),
    nameHash: (name) => bytes(keys.name, [name]),
    knownBrowser: (nameKey, nonce) => mac(keys.knownBrowser, [nameKey, nonce]),
    verifyKnownBrowser: (nameKey, nonce, value) => isSame(mac(keys.knownBrowser, [nameKey, nonce]), value),
    oidcCookie: (state) => mac(keys.oidcCookie, [state]),
    verifyOidcCookie: (state, value) => isSame(mac(keys.oidcCookie, [state]), value),
    oidcVerifier: (state) => mac(keys.oidcVerifier, [state]),
    oidcNonce: (state) => mac(keys.oidcNonce, [state]),
  };
}

const TOTP_KEY_BYTES = 20;
const CSRF_NONCE_BYTES = 16;
const KEY_ID_CHARACTERS = 8;
const CSRF = /^([\w-]{22})\.(\d{1,15})\.[\w-]{43}$/;

export function openSigning(key: SigningKey): Signing {
  const derive = (purpose: string): Buffer =>
    Buffer.from(hkdfSync("sha256", key.reveal(), "", `latchkey/v1/${purpose}`, KEY_BYTES));
  const hmac = (purpose: string): Hmac => openHmac(derive(purpose));
  const keys = {
    apiKey: hmac("api-key"),
    hostedToken: hmac("hosted-token"),
    clientToken: hmac("client-token"),
    departure: hmac("embedded-departure"),
    presigned: hmac("presigned"),
    csrf: hmac("csrf"),
    fingerprint: hmac("fingerprint"),
    oauthCookie: hmac("oauth-cookie"),
    oauthVerifier: hmac("oauth-verifier"),
    oauthForm: hmac("oauth-form"),
    runHandle: hmac("run-handle"),
    loginName: hmac("login-name"),
    oauthAnswer: hmac("oauth-answer"),
    bound: hmac("credentials-bound"),
    backup: hmac("backup"),
  };
  // Part of the URL, so that a rotation can keep the old key while its URLs are valid (docs/decisions/0029).
  const keyId = derive("key-id").toString("hex").slice(0, KEY_ID_CHARACTERS);

  const presign = ({ accountId, runId, key: outputKey, expiresAtMs }: PresignedParts): string =>
    `${keyId}.${mac(keys.presigned, ["read", keyId, accountId, runId, outputKey, expiresAtMs])}`;
  const writeCsrf = (token: string, nonce: string, issuedAtMs: number): string =>
    `${nonce}.${issuedAtMs}.${mac(keys.csrf, [token, nonce, issuedAtMs])}`;

  const boundMark = (atMs: number): Buffer => keys.bound(JSON.stringify([atMs]));
  return {
    boundMark,
    verifyBoundMark: (atMs, mark) => mark.length === 32 && timingSafeEqual(boundMark(atMs), mark),
    fingerprint: () => keys.fingerprint("latchkey signing key"),
    apiKeyHash: keys.apiKey,
    hostedToken: (sessionId) => mac(keys.hostedToken, [sessionId]),
    clientToken: (embeddedSessionId) => mac(keys.clientToken, [embeddedSessionId]),
    verifyClientToken: (embeddedSessionId, token) =>
      isSame(mac(keys.clientToken, [embeddedSessionId]), token),
    departure: (parts) => mac(keys.departure, parts),
    verifyDeparture: (parts, value) => isSame(mac(keys.departure, parts), value),
    tokenLookup: (token) => createHash("sha256").update(token).digest(),
    presign,
    verifyPresigned: (parts, signature) => isSame(presign(parts), signature),
    oauthCookie: (state) => mac(keys.oauthCookie, [state]),
    verifyOAuthCookie: (state, value) => isSame(mac(keys.oauthCookie, [state]), value),
    oauthVerifier: (state) => mac(keys.oauthVerifier, [state]),
    oauthFormKey: (state) => new Secret(keys.oauthForm(state)),
    oauthAnswerKey: (stateHash) => new Secret(keys.oauthAnswer(stateHash)),
    csrf: (token, nowMs) =>
      writeCsrf(token, randomBytes(CSRF_NONCE_BYTES).toString("base64url"), Math.floor(nowMs)),
    verifyCsrf: (token, value, { nowMs, lifetimeMs }) => {
      const match = CSRF.exec(value);
      if (match === null) return false;
      const issuedAtMs = Number(match[2]);
      return isSame(writeCsrf(token, match[1] ?? "", issuedAtMs), value) && nowMs - issuedAtMs <= lifetimeMs;
    },
    runHandle: (parts) => keys.runHandle(JSON.stringify(parts)).toString("hex"),
    loginName: (parts) => mac(keys.loginName, parts),
    backupMac: keys.backup,
    operators: openOperatorKeys(derive),
    audit: openAuditKeys(derive("audit-seal"), derive("audit-sign")),
    rows: openRowKeys(derive("deciding-row")),
  };
}

/** HMAC-SHA256 as base64url. The parts are encoded as a JSON array, so that no two lists have the same text. */
function mac(key: Hmac, parts: readonly (string | number)[]): string {
  return key(JSON.stringify(parts)).toString("base64url");
}

/** Compares in constant time for strings of equal length. Compares strings and not bytes, so that no signature has a second encoding. */
function isSame(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)];
  return a.length === b.length && timingSafeEqual(a, b);
}
