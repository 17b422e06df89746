/**
 * Gives free slots to the accounts that want some, each to the one that has the fewest by then: while several wait, none gets
 * more than its share (docs/decisions/0006). Equals take turns in the order given. Accounts without a slot are left out.
 */
export function shareSlots(
  free: number,
  accountIds: readonly string[],
  carried: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const shares = new Map<string, number>();
  const [only] = accountIds;
  if (only === undefined || free <= 0) return shares;
  if (accountIds.length === 1) return shares.set(only, free);
  // Level by level: all that have as few as the lowest get one, as long as there are any.
  const waiting = accountIds.map((id) => ({ id, has: carried.get(id) ?? 0 }));
  waiting.sort((a, b) => a.has - b.has);
  let left = free;
  for (let level = waiting[0]?.has ?? 0; left > 0; level++) {
    for (const { id, has } of waiting) {
      if (has > level || left === 0) break;
      shares.set(id, (shares.get(id) ?? 0) + 1);
      left--;
    }
  }
  return shares;
}
