import {
  approveDeviceSignIn,
  beginDeviceSignIn,
  denyDeviceSignIn,
  findDeviceSignIn,
  pollDeviceSignIn,
} from "#actions/operators/device-sign-in.ts";
import type * as contract from "#contract/operator/devices.ts";
import type { Handler, OpenContext } from "./context.ts";

export const postDeviceSignIn: Handler<typeof contract.beginDeviceSignIn, OpenContext> = async (
  { services, request },
  { body },
) => {
  const begun = await beginDeviceSignIn(services, {
    name: body.name,
    address: services.clientOf(request.raw),
  });
  return {
    device_code: begun.deviceCode,
    user_code: begun.userCode,
    verification_url: begun.url,
    verification_url_complete: `${begun.url}?code=${begun.userCode}`,
    expires_in_seconds: begun.lifetimeMs / 1_000,
    interval_seconds: begun.intervalMs / 1_000,
  };
};

export const postPoll: Handler<typeof contract.pollDeviceSignIn, OpenContext> = async (
  { services, request },
  { body },
) => {
  const { status, grant } = await pollDeviceSignIn(
    services,
    body.device_code,
    services.clientOf(request.raw),
  );
  return {
    status,
    grant: grant && {
      token: grant.token,
      token_id: grant.tokenId,
      operator: grant.email,
      role: grant.role,
      is_limited: grant.accountIds !== null,
      expires_at: grant.expiresAt.toISOString(),
    },
  };
};

export const getDeviceSignIn: Handler<typeof contract.readDeviceSignIn> = async (
  { services, caller },
  { params },
) => {
  const found = await findDeviceSignIn(services, caller, params["userCode"] ?? "");
  return {
    user_code: found.userCode,
    name: found.name,
    address: found.address,
    created_at: found.createdAt.toISOString(),
    expires_at: found.expiresAt.toISOString(),
    roles: [...found.roles],
    lifetime_seconds_max: found.lifetimeMsMax / 1_000,
  };
};

export const postApprove: Handler<typeof contract.approveDeviceSignIn> = async (
  { services, caller },
  { params, body },
) => {
  const { id, expiresAt } = await approveDeviceSignIn(services, caller, params["userCode"] ?? "", {
    role: body.role,
    lifetimeMs: body.lifetime_seconds * 1_000,
  });
  return { token_id: id, expires_at: expiresAt.toISOString() };
};

export const postDeny: Handler<typeof contract.denyDeviceSignIn> = async ({ services, caller }, { params }) =>
  await denyDeviceSignIn(services, caller, params["userCode"] ?? "");
