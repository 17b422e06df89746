/** What holds this thread's event loop up, whatever else the machine does. */
export interface Turns {
  /** The most CPU time of this thread between two looks at it, 10 ms apart or one turn of the event loop. Ends the watch. */
  longestMs(): number;
}

export function watchTurns(): Turns {
  let longest = 0;
  let before = process.threadCpuUsage();
  const look = (): void => {
    const { user, system } = process.threadCpuUsage(before);
    longest = Math.max(longest, user + system);
    before = process.threadCpuUsage();
  };
  const timer = setInterval(look, 10);
  return {
    longestMs: () => {
      clearInterval(timer);
      look();
      return longest / 1_000;
    },
  };
}
