/** The page of the account's secrets; with the form for the missing one open, for those who may set it. */
export const secretPath = ({
  account,
  name,
  kind,
}: {
  readonly account: string;
  readonly name: string;
  readonly kind: string;
}): string =>
  `/secrets?${new URLSearchParams({ account, ...(kind === "missing_secret" ? { set: `${account}/${name}` } : {}) })}`;
