import { Button, Progress, Stack, Text } from "@mantine/core";
import { useEffect, useState, type ReactNode } from "react";
import { listAuditChains, verifyAuditChain } from "../api/operations.ts";
import { call } from "../api/request.ts";
import { FailureNote } from "../parts/failure-note.tsx";
import { Note } from "../parts/note.tsx";

interface Check {
  readonly chains: number;
  readonly done: number;
  readonly entries: number;
  readonly findings: readonly string[];
  readonly isOver: boolean;
}

/** Verifies all chains, part by part, and reports the progress after each. */
async function checkAll(onStep: (check: Check) => void, signal: AbortSignal): Promise<void> {
  const { items } = await call(listAuditChains, {}, signal);
  let check: Check = { chains: items.length, done: 0, entries: 0, findings: [], isOver: items.length === 0 };
  onStep(check);
  for (const { chain, account } of items) {
    for (let after: string | null | undefined; after !== null;) {
      const part = await call(verifyAuditChain, { params: { chain }, query: { after } }, signal);
      const found = part.findings.map(({ fault, message }) => `${account ?? chain}: ${fault}: ${message}`);
      check = { ...check, entries: check.entries + part.checked, findings: [...check.findings, ...found] };
      onStep(check);
      after = part.next;
    }
    check = { ...check, done: check.done + 1, isOver: check.done + 1 === items.length };
    onStep(check);
  }
}

/** Verifies every chain with keys that are not in the database: a button, and what it has found so far. */
export function useAuditCheck(): { readonly button: ReactNode; readonly report: ReactNode } {
  const [check, setCheck] = useState<Check | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  useEffect(() => () => running?.abort(), [running]);
  const start = (): void => {
    const stop = new AbortController();
    setRunning(stop);
    setFailure(null);
    checkAll(setCheck, stop.signal)
      .catch((error: unknown) => {
        if (!stop.signal.aborted) setFailure(error);
      })
      .finally(() => setRunning(null));
  };
  const isUsed = running !== null || failure !== null || check?.isOver === true;
  return {
    button: (
      <Button variant="default" loading={running !== null} onClick={start}>
        Verify integrity
      </Button>
    ),
    report: isUsed && (
      <Stack gap="sm" mb="md">
        {running !== null && check && (
          <>
            <Text size="sm" c="dimmed" component="output">
              {check.entries} entries of {check.done} of {check.chains} chains so far
            </Text>
            <Progress value={(100 * check.done) / Math.max(check.chains, 1)} aria-label="Verified chains" />
          </>
        )}
        {failure !== null && <FailureNote error={failure} />}
        {check?.isOver === true && <Outcome check={check} />}
      </Stack>
    ),
  };
}

function Outcome({ check }: { readonly check: Check }) {
  if (check.findings.length === 0)
    return (
      <Note tone="good" title="Verified" isAlert>
        {check.entries} entries in {check.chains} chains are what was written. The command line compares them
        with checkpoint files as well: <code>latchkey audit verify</code>.
      </Note>
    );
  return (
    <Note tone="bad" title="The audit log has been tampered with" isAlert>
      <ul>
        {check.findings.map((finding) => (
          <li key={finding}>{finding}</li>
        ))}
      </ul>
    </Note>
  );
}
