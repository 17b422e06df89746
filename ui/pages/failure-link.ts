/** The list of the runs that failed for one reason. `last`: only those of this time. */
export function runsOfGroup(
  group: { readonly account: string; readonly blueprint: string | null; readonly error: string },
  last: string | null,
): string {
  const query = new URLSearchParams({ status: "failed", account: group.account, error: group.error });
  if (group.blueprint !== null) query.set("blueprint", group.blueprint);
  if (last !== null) query.set("last", last);
  return `/runs?${query}`;
}
