import type { Needs } from "#actions/services.ts";

/** Browsers refuse `__Host-` and `Secure` over plain http, so an installation on loopback uses neither. */
export const isSecure = (services: Needs<"publicUrl">): boolean => services.publicUrl().startsWith("https:");

/** Undefined when it is present twice: another host may have set one of them. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  const values = (header ?? "").split(";").flatMap((pair) => {
    const [key = "", value = ""] = pair.trim().split("=", 2);
    return key === name ? [value] : [];
  });
  return values.length === 1 ? values[0] : undefined;
}
