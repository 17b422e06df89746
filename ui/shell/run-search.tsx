import { Kbd, UnstyledButton } from "@mantine/core";
import { lazy, Suspense, useEffect, useState } from "react";
import { SEARCH_ID } from "./shortcuts.ts";
import styles from "./search.module.css";

const SearchDialog = lazy(async () => ({ default: (await import("./search-dialog.tsx")).SearchDialog }));

/** Opens the search, also by Ctrl+K, in text fields too. */
export function RunSearch() {
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== "k") return;
      event.preventDefault();
      setIsOpen(true);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  return (
    <search>
      <UnstyledButton
        id={SEARCH_ID}
        className={styles["field"] ?? ""}
        aria-haspopup="dialog"
        onClick={() => setIsOpen(true)}
      >
        Search
        <Kbd size="xs" aria-hidden="true">
          Ctrl K
        </Kbd>
      </UnstyledButton>
      {isOpen && (
        <Suspense>
          <SearchDialog onClose={() => setIsOpen(false)} />
        </Suspense>
      )}
    </search>
  );
}
