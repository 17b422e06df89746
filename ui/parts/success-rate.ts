/** The share of completed runs among those that ended by themselves. */
export function rateOf({
  completed,
  failed,
}: {
  readonly completed: number;
  readonly failed: number;
}): string {
  const ended = completed + failed;
  if (ended === 0) return "–";
  // 99.96 % is not all of them.
  return `${Math.floor((completed / ended) * 1_000) / 10} %`;
}

/** The same as a ratio, which says of how many. */
export const ratioOf = ({
  completed,
  failed,
}: {
  readonly completed: number;
  readonly failed: number;
}): string => (completed + failed === 0 ? "–" : `${completed} of ${completed + failed}`);
