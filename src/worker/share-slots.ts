/**
 * Distributes free slots among accounts, each to the account with the fewest at that point: while several wait, none gets more than its
 * share (docs/decisions/0006). Ties go in the given order. Accounts that get no slot are omitted.
 */
export function shareSlots(
  free: number,
  accountIds: readonly string[],
  active: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const shares = new Map<string, number>();
  const [only] = accountIds;
  if (only === undefined || free <= 0) return shares;
  if (accountIds.length === 1) return shares.set(only, free);
  // Level by level: all accounts with the lowest number get one each, while slots are left.
  const waiting = accountIds.map((id) => ({ id, has: active.get(id) ?? 0 }));
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
