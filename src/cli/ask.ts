import { createInterface } from "node:readline/promises";

/** Whether somebody sits at the terminal who can answer. */
export const canAsk = (): boolean => process.stdin.isTTY && process.stderr.isTTY;

/** Asks a question on standard error; anything but `y` or `yes`, and the end of the input, is a no. */
export async function ask(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const end = new Promise<string>((resolve) => terminal.once("close", () => resolve("")));
  try {
    const answer = await Promise.race([terminal.question(`${question} [y/N] `), end]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
