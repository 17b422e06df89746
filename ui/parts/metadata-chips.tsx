import { Anchor } from "@mantine/core";
import { Link } from "wouter";
import styles from "./metadata-chips.module.css";

/** A run's metadata, each item as a link to the runs that share it. */
export function MetadataChips({ of }: { readonly of: Readonly<Record<string, string>> }) {
  return Object.entries(of).map(([name, value]) => (
    <Anchor
      key={name}
      component={Link}
      href={`/runs?${new URLSearchParams({ metadata: `${name}=${value}` })}`}
      className={styles["chip"] ?? ""}
      title={`${name}: ${value}`}
    >
      <span className={styles["name"]}>{name}</span> {value}
    </Anchor>
  ));
}
