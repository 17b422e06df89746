const WIDTH = 30;
/** Without a terminal, as in a job's log: one line per this many percent. */
const LINE_PERCENT = 10;
const REDRAW_MS = 100;

export interface ProgressBar {
  show(done: number, total: number): void;
  end(): void;
}

/** Shows progress on standard error: one line that is redrawn on a terminal, a few lines elsewhere. */
export function openProgressBar(what: string): ProgressBar {
  const { stderr } = process;
  const startedAt = performance.now();
  let drawnAt = -Infinity;
  let told = -1;
  return {
    show: (done, total) => {
      const share = total === 0 ? 1 : Math.min(done / total, 1);
      const percent = Math.floor(share * 100);
      const seconds = (performance.now() - startedAt) / 1_000;
      const rate = seconds > 0 ? Math.round(done / seconds) : 0;
      const text = `${String(percent).padStart(3)} %  ${done} of ${total}, ${rate} a second`;
      if (stderr.isTTY) {
        if (share < 1 && performance.now() - drawnAt < REDRAW_MS) return;
        drawnAt = performance.now();
        const bar = "█".repeat(Math.round(share * WIDTH)).padEnd(WIDTH, "░");
        stderr.write(`\r\u001B[K${what} ${bar} ${text}`);
      } else if (Math.floor(percent / LINE_PERCENT) > told) {
        told = Math.floor(percent / LINE_PERCENT);
        stderr.write(`${what} ${text}\n`);
      }
    },
    end: () => {
      if (stderr.isTTY) stderr.write("\n");
    },
  };
}
