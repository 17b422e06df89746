/**
 * Works on items in order, at most so many at once, and gives what came of each in their order. After one has failed, or
 * `isOver`, no other is begun; those under way come to their end. Throws what the first that failed threw.
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
