import { useEffect, useRef } from "react";

/** A key of the page, also while a text field has the focus, but not while a dialog is open. */
export function usePageKey(isPressed: (event: KeyboardEvent) => boolean, action: () => void): void {
  const latest = useRef({ isPressed, action });
  useEffect(() => {
    latest.current = { isPressed, action };
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!latest.current.isPressed(event) || document.querySelector("[role=dialog]")) return;
      event.preventDefault();
      latest.current.action();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}
