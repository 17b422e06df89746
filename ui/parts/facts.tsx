import type { ReactNode } from "react";
import styles from "./facts.module.css";

/** Names with their values. Those with `null` are left out. `isInline`: in as few lines as possible. */
export function Facts({
  of,
  isInline = false,
}: {
  readonly of: readonly (readonly [name: string, value: ReactNode])[];
  readonly isInline?: boolean;
}) {
  return (
    <dl className={styles[isInline ? "inline" : "facts"]}>
      {of
        .filter(([, value]) => value !== null)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
