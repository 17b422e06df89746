/**
 * Processes items in order with limited concurrency, and yields the results in that order. After one has failed, or once
 * `isOver`, no other is started; those in progress are completed. Throws the error of the first item that failed.
 */
export async function inLanes<Item, Given>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item, index: number) => Promise<Given>,
  isOver: () => boolean = () => false,
): Promise<readonly Given[]> {
  const given: Given[] = [];
  const failures: unknown[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (failures.length === 0 && next < items.length && !isOver()) {
      const index = next++;
      try {
        given[index] = await work(items[index] as Item, index);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, lane));
  if (failures.length > 0) throw failures[0];
  return given;
}
