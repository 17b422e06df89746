import type { Browser } from "../operator/browser.ts";

const TOKEN = { name: "ci", role: "viewer", lifetime_seconds: 3_600 };

/** The operations of operator tokens, and of command lines that get one, with their entries and what they are asked about. */
export function tokenEffects<Asked extends { readonly browser: Browser }>(
  asAdmin: (params?: Readonly<Record<string, string>>, body?: object) => Promise<Asked>,
  newBrowser: () => Browser,
) {
  const newToken = async (): Promise<string> =>
    (await (await asAdmin()).browser.send("POST", "/tokens", TOKEN)).body.id;
  const newDevice = async (): Promise<string> =>
    (await newBrowser().send("POST", "/session/device", { name: "ana@laptop" })).body.user_code;
  return {
    createToken: { actions: ["operator_token.create"], ask: async () => await asAdmin({}, TOKEN) },
    revokeToken: {
      actions: ["operator_token.revoke"],
      ask: async () => await asAdmin({ tokenId: await newToken() }),
    },
    endOwnToken: "only a token has it, as its own actor: operator/device-sign-in has its entry",
    beginDeviceSignIn: "who waits with a code is nobody yet; the approval has its entry",
    pollDeviceSignIn: "it hands out what was approved, and the approval has its entry",
    approveDeviceSignIn: {
      actions: ["operator_token.create"],
      ask: async () =>
        await asAdmin({ userCode: await newDevice() }, { role: "viewer", lifetime_seconds: 3_600 }),
    },
    denyDeviceSignIn: "nobody gets anything, and the code expires anyway",
  };
}
