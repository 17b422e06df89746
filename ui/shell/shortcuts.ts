import { useEffect } from "react";
import { useLocation } from "wouter";
import { useSignedIn } from "../api/queries.ts";
import { ROUTES } from "../routes.tsx";

export const SEARCH_ID = "search";
const CHORD_MS = 1_500;

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));

/** `/` opens the search; `g` and a page's key open the page. Ignored in text fields, and while a dialog is open. */
export function useShortcuts(): void {
  const [, navigate] = useLocation();
  const { may } = useSignedIn();
  useEffect(() => {
    let chordAt = -Infinity;
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("[role=dialog]")) return;
      if (event.key === "/") {
        event.preventDefault();
        document.getElementById(SEARCH_ID)?.click();
        return;
      }
      const wanted = ROUTES.find(({ nav }) => nav?.key === event.key);
      if (
        event.timeStamp - chordAt < CHORD_MS &&
        wanted &&
        (wanted.permission === null || may(wanted.permission))
      )
        navigate(wanted.path);
      chordAt = event.key === "g" ? event.timeStamp : -Infinity;
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [navigate, may]);
}
