/** The name under which the driver knows the selector engine below. */
export const EDITABLE_ENGINE = "latchkey_editable";

/** The part of the DOM that the engine uses: this file is checked without the types of pages. */
interface PageElement {
  readonly localName: string;
  readonly isConnected: boolean;
  readonly isContentEditable?: boolean;
  readonly type?: string;
  readonly disabled?: boolean;
  readonly readOnly?: boolean;
  matches(selector: string): boolean;
}

interface PageGlobals {
  readonly origin: string;
  readonly location: { readonly ancestorOrigins: ArrayLike<string> };
}

/**
 * A selector engine of the driver's: given an element and the origins that may have a secret (separated by blanks), returns the
 * element itself if it is an editable field of a document of these origins, with no frame of another origin around it. Runs in
 * the page's isolated world. The driver sends the source of this function, so it uses nothing from outside itself.
 */
export function findEditable(): object {
  const find = (element: PageElement, hosts: string): PageElement | undefined => {
    const page = globalThis as unknown as PageGlobals;
    const allowed = hosts.split(" ");
    // `null` in a sandboxed frame, the parent's in `srcdoc`.
    const origins = [page.origin, ...Array.from(page.location.ancestorOrigins)];
    if (!origins.every((origin) => allowed.includes(origin))) return undefined;
    const noText = "button checkbox color file hidden image radio range reset submit".split(" ");
    const isField =
      element.localName === "textarea" ||
      (element.localName === "input" && !noText.includes(element.type ?? "")) ||
      element.isContentEditable === true;
    // `:disabled` also sees the fieldset around a field.
    const isOpen = !element.matches(":disabled") && element.readOnly !== true;
    return isField && isOpen && element.isConnected ? element : undefined;
  };
  return {
    query: find,
    queryAll: (element: PageElement, hosts: string): PageElement[] => {
      const found = find(element, hosts);
      return found === undefined ? [] : [found];
    },
  };
}
