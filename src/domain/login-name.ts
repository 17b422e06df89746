import type { Strategy } from "./strategy.ts";

/**
 * The name by which a target knows a login: what was typed into the field that its login calls `username`, that a password manager would
 * fill in with one, or else into the first plain one. Brought to one form, so that capitals and spaces make no other name. null: the login
 * has no plain field, such as one by an access token alone.
 */
export function loginNameOf(
  { fields, login }: Pick<Strategy, "fields" | "login">,
  values: ReadonlyMap<string, string>,
): string | null {
  const plain = fields.filter(({ type, secret }) => !secret && (type === "text" || type === "email"));
  const field =
    plain.find(({ key }) => key === login["username"]) ??
    plain.find(({ autocomplete }) => autocomplete === "username") ??
    plain[0];
  const name = field === undefined ? "" : (values.get(field.key) ?? "");
  return name.normalize("NFKC").trim().toLowerCase() || null;
}
