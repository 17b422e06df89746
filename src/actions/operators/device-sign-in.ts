import { randomBytes } from "node:crypto";
import { OperatorError } from "#actions/operator-error.ts";
import { countFailedAuthentication } from "#actions/keys/limit-rate.ts";
import type { Needs } from "#actions/services.ts";
import {
  decideDeviceSignIn,
  findOpenDeviceSignIn,
  insertDeviceSignIn,
  isDeviceSignInOpen,
  lockOpenDeviceSignIn,
  takeDeviceDecision,
  type DeviceSignIn,
} from "#db/operators/operator-device-sign-ins.ts";
import { findLiveToken } from "#db/operators/operator-tokens.ts";
import { limits } from "#domain/limits.ts";
import { coversRole, OPERATOR_ROLES, type OperatorRole } from "#domain/operator.ts";
import { notFound, Problem } from "#domain/problem.ts";
import type { OperatorKeys } from "#lib/signing.ts";
import { limitOf } from "./account-limit.ts";
import { addToken, type NewOperatorToken } from "./manage-tokens.ts";
import type { OperatorCaller } from "./operator-caller.ts";
import { throttleCodes, throttleDevice, throttlePoll } from "./throttle-sign-in.ts";

/**
 * docs/decisions/0022, RFC 8628: `latchkey login`. The command line shows a code, an operator approves it in the dashboard, and the
 * command line gets a token that acts for the operator.
 *
 * The database has the hash of the device code. The user code and the token are derived from that hash with the signing key, so who
 * changes a row can neither put another device behind a code that an operator approves, nor fetch a token with another device code.
 */
export interface BegunDeviceSignIn {
  readonly deviceCode: string;
  /** With its hyphen. */
  readonly userCode: string;
  readonly url: string;
  readonly lifetimeMs: number;
  readonly intervalMs: number;
}

const DEVICE_CODE_BYTES = 32;
const DEVICE_CODE = /^[\w-]{43}$/;
const TRIES = 3;

/** Throws Problem 422 or 429. */
export async function beginDeviceSignIn(
  services: Needs<"buckets" | "db" | "publicUrl" | "signing">,
  device: { readonly name: string; readonly address: string },
): Promise<BegunDeviceSignIn> {
  throttleDevice(services, device.address);
  const name = device.name.trim();
  if (name === "" || /\p{C}/u.test(name))
    throw new OperatorError("The name must have visible characters only, and at least one.");
  const keys = services.signing.operators;
  // Two codes are the same once in a million million times; then another one is drawn.
  for (let tried = 0; tried < TRIES; tried++) {
    const deviceCode = randomBytes(DEVICE_CODE_BYTES).toString("base64url");
    const deviceHash = keys.deviceHash(deviceCode);
    const userCode = keys.deviceUserCode(deviceHash);
    const made = await insertDeviceSignIn(services.db, {
      deviceHash,
      userCode,
      name,
      address: device.address,
      lifetimeMs: limits.deviceSignInMs,
    });
    if (made)
      return {
        deviceCode,
        userCode: withHyphen(userCode),
        url: `${services.publicUrl()}/dashboard/device`,
        lifetimeMs: limits.deviceSignInMs,
        intervalMs: limits.devicePollMs,
      };
  }
  throw new OperatorError("No code is free. Try again.");
}

const withHyphen = (userCode: string): string => `${userCode.slice(0, 4)}-${userCode.slice(4)}`;

/** As people type it: in any case, with or without hyphen and blanks. */
const withoutHyphen = (text: string): string => text.replaceAll(/[\s-]/g, "").toUpperCase();

export interface DeviceDecision {
  readonly status: "pending" | "approved" | "denied";
  readonly grant: {
    readonly token: string;
    readonly tokenId: string;
    readonly email: string;
    readonly role: OperatorRole;
    readonly accountIds: readonly string[] | null;
    readonly expiresAt: Date;
  } | null;
}

/** A decision is handed out once. Throws Problem 404 or 429. */
export async function pollDeviceSignIn(
  services: Needs<"buckets" | "db" | "signing">,
  deviceCode: string,
  address: string,
): Promise<DeviceDecision> {
  const keys = services.signing.operators;
  if (!DEVICE_CODE.test(deviceCode)) throw unknownCode(services, address);
  const deviceHash = keys.deviceHash(deviceCode);
  throttlePoll(services, deviceHash);
  const taken = await takeDeviceDecision(services.db, deviceHash);
  if (!taken) {
    if (await isDeviceSignInOpen(services.db, deviceHash)) return { status: "pending", grant: null };
    throw unknownCode(services, address);
  }
  if (taken.tokenId === null) return { status: "denied", grant: null };
  const token = keys.deviceToken(deviceHash);
  const live = await findLiveToken(services.db, keys.tokenHash(token));
  // Revoked in the meantime, or not what this code was approved with.
  if (live?.tokenId !== taken.tokenId || live.actsFor === null) throw unknownCode(services, address);
  const { tokenId, role, accountIds, expiresAt, actsFor } = live;
  return {
    status: "approved",
    grant: { token, tokenId, email: actsFor.email, role, accountIds, expiresAt },
  };
}

function unknownCode(services: Needs<"buckets">, address: string): Problem {
  countFailedAuthentication(services, address);
  return new Problem(
    "not_found",
    "The sign-in has expired, was already finished, or never began. Start again: latchkey login.",
  );
}

export interface FoundDeviceSignIn extends DeviceSignIn {
  /** With its hyphen. */
  readonly userCode: string;
  /** The roles that the operator can give it. */
  readonly roles: readonly OperatorRole[];
  readonly lifetimeMsMax: number;
}

/** Throws Problem 404 or 429. */
export async function findDeviceSignIn(
  services: Needs<"buckets" | "db" | "signing">,
  caller: OperatorCaller,
  text: string,
): Promise<FoundDeviceSignIn> {
  throttleCodes(services, caller.operatorId);
  const userCode = withoutHyphen(text);
  const found = await findOpenDeviceSignIn(services.db, userCode);
  if (!found || !isOf(services.signing.operators, found, userCode)) throw waitsNoMore();
  const roles = OPERATOR_ROLES.filter((role) => coversRole(caller.role, role));
  return { ...found, userCode: withHyphen(userCode), roles, lifetimeMsMax: limits.deviceTokenMsMax };
}

const waitsNoMore = (): Problem => notFound("The command line that waits with this code was");

/** Whether the code was shown by the command line whose token would be approved. */
const isOf = (keys: OperatorKeys, { deviceHash }: DeviceSignIn, userCode: string): boolean =>
  keys.deviceUserCode(deviceHash) === userCode;

/** The token is limited to the operator's own accounts. Throws Problem 404, 409 or 429. */
export async function approveDeviceSignIn(
  services: Needs<"buckets" | "db" | "signing">,
  caller: OperatorCaller,
  text: string,
  { role, lifetimeMs }: { readonly role: OperatorRole; readonly lifetimeMs: number },
): Promise<Omit<NewOperatorToken, "token">> {
  const { deviceHash, name, roles } = await findDeviceSignIn(services, caller, text);
  if (!roles.includes(role))
    throw new Problem(
      "conflict",
      `Your role ${caller.role} does not cover the role ${role}. Choose ${roles.join(" or ")}.`,
    );
  const { signing } = services;
  const actor = { kind: "operator", id: caller.operatorId } as const;
  return await services.db.transaction(async (db) => {
    if (!(await lockOpenDeviceSignIn(db, deviceHash))) throw waitsNoMore();
    const made = await addToken({ db, signing, actor }, signing.operators.deviceToken(deviceHash), {
      name,
      role,
      lifetimeMs,
      accountIds: limitOf(caller),
      actsFor: caller.operatorId,
    });
    await decideDeviceSignIn(db, deviceHash, made.id);
    return made;
  });
}

/** Throws Problem 404 or 429. */
export async function denyDeviceSignIn(
  services: Needs<"buckets" | "db" | "signing">,
  caller: OperatorCaller,
  text: string,
): Promise<void> {
  const { deviceHash } = await findDeviceSignIn(services, caller, text);
  await services.db.transaction(async (db) => {
    if (!(await lockOpenDeviceSignIn(db, deviceHash))) throw waitsNoMore();
    await decideDeviceSignIn(db, deviceHash, null);
  });
}
