/** A part of a picture, in pixels from its top left corner. */
export interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The parts of the debugger's `DOMSnapshot.captureSnapshot` that are used. Texts are indices of `strings`, -1 is none. */
export interface PageSnapshot {
  readonly documents: readonly DocumentSnapshot[];
  readonly strings: readonly string[];
}

interface DocumentSnapshot {
  /** By node, in the order of the document. */
  readonly nodes: {
    readonly parentIndex?: readonly number[];
    readonly nodeType?: readonly number[];
    readonly nodeName?: readonly number[];
    readonly nodeValue?: readonly number[];
    /** Names and values in turn. */
    readonly attributes?: readonly (readonly number[])[];
  };
  /** By part of the layout. */
  readonly layout: {
    readonly nodeIndex: readonly number[];
    /** x, y, width and height in the document. */
    readonly bounds: readonly (readonly number[])[];
    readonly text: readonly number[];
  };
  readonly scrollOffsetX?: number;
  readonly scrollOffsetY?: number;
}

const TEXT_NODE = 3;
/** What they show is not in the document: frames are documents of their own, the others only pixels. */
const OPAQUE = ["IFRAME", "FRAME", "FENCEDFRAME", "OBJECT", "EMBED", "CANVAS", "VIDEO"];
const FIELDS = ["TEXTAREA", "SELECT"];
/** Inputs whose value is a label, or nothing. */
const WITHOUT_VALUE = ["button", "submit", "reset", "image", "checkbox", "radio"];
const FIELD_ROLES = ["textbox", "searchbox", "combobox", "spinbutton"];
/** A text that is longer is only looked at in its parts: what an element shows in one place is shorter. */
const TOGETHER_CHARACTERS_MAX = 20_000;

/**
 * The parts of a page that a picture of it must not show: fields, what is no text (frames, canvases, videos), and every element whose
 * text or attributes have a secret, also if the text is spread over elements inside of it. `snapshot` is the debugger's, which sees
 * shadow roots and `::before`, and is made without any script of the page. `isSecret`: whether a text has a secret in it.
 */
export function coveredAreas(snapshot: PageSnapshot, isSecret: (text: string) => boolean): readonly Area[] {
  const [page] = snapshot.documents;
  return page === undefined ? [] : new PageLayout(page, snapshot.strings, isSecret).areas();
}

class PageLayout {
  readonly #document: DocumentSnapshot;
  readonly #strings: readonly string[];
  readonly #isSecret: (text: string) => boolean;
  readonly #children = new Map<number, number[]>();
  /** The entries of the layout of a node: a `::before` has one for itself and one for its text. */
  readonly #layouts = new Map<number, number[]>();
  readonly #covered = new Set<number>();

  constructor(document: DocumentSnapshot, strings: readonly string[], isSecret: (text: string) => boolean) {
    this.#document = document;
    this.#strings = strings;
    this.#isSecret = isSecret;
    for (const [node, parent] of (document.nodes.parentIndex ?? []).entries()) {
      const siblings = this.#children.get(parent) ?? [];
      siblings.push(node);
      this.#children.set(parent, siblings);
    }
    for (const [entry, node] of document.layout.nodeIndex.entries()) {
      const entries = this.#layouts.get(node) ?? [];
      entries.push(entry);
      this.#layouts.set(node, entries);
    }
  }

  areas(): readonly Area[] {
    for (const root of this.#children.get(-1) ?? []) this.#visit(root);
    return [...this.#covered].flatMap((node) => this.#areasOf(node));
  }

  /** Returns the text that the element shows outside of what is covered. */
  #visit(node: number): string {
    if (this.#isOpaque(node) || this.#attributesOf(node).some(([, value]) => this.#isSecret(value))) {
      this.#covered.add(node);
      return " ";
    }
    const parts = [this.#ownText(node)];
    for (const child of this.#children.get(node) ?? []) parts.push(this.#visit(child));
    const texts = parts.filter((text) => text !== "");
    const text = texts.join("");
    const isLeaf = parts[0] !== "";
    const mayHold = isLeaf || (texts.length > 1 && text.length <= TOGETHER_CHARACTERS_MAX);
    if (!mayHold || !this.#isSecret(text)) return text;
    this.#covered.add(node);
    return " ";
  }

  #isOpaque(node: number): boolean {
    const name = this.#text(this.#document.nodes.nodeName?.[node]).toUpperCase();
    if (OPAQUE.includes(name) || FIELDS.includes(name)) return true;
    const attributes = new Map(this.#attributesOf(node));
    if (name === "INPUT") return !WITHOUT_VALUE.includes((attributes.get("type") ?? "text").toLowerCase());
    const editable = attributes.get("contenteditable");
    return (
      (editable !== undefined && editable.toLowerCase() !== "false") ||
      FIELD_ROLES.includes((attributes.get("role") ?? "").toLowerCase())
    );
  }

  #attributesOf(node: number): readonly (readonly [name: string, value: string])[] {
    const flat = this.#document.nodes.attributes?.[node] ?? [];
    return Array.from({ length: flat.length / 2 }, (_, index) => [
      this.#text(flat[index * 2]),
      this.#text(flat[index * 2 + 1]),
    ]);
  }

  /** Of a text, or of what a style puts before or after an element; empty if it is not shown. */
  #ownText(node: number): string {
    const { nodes, layout } = this.#document;
    const entries = this.#layouts.get(node) ?? [];
    const shown = entries.map((entry) => this.#text(layout.text[entry])).join("");
    if (shown !== "") return shown;
    return entries.length > 0 && nodes.nodeType?.[node] === TEXT_NODE
      ? this.#text(nodes.nodeValue?.[node])
      : "";
  }

  /** -1 is no text. */
  #text(index: number | undefined): string {
    return index === undefined || index < 0 ? "" : (this.#strings[index] ?? "");
  }

  /** Everything of the element: what is inside of it may lie beside it. */
  #areasOf(node: number): readonly Area[] {
    const { layout, scrollOffsetX = 0, scrollOffsetY = 0 } = this.#document;
    const own = (this.#layouts.get(node) ?? []).flatMap((entry) => {
      const [x = 0, y = 0, width = 0, height = 0] = layout.bounds[entry] ?? [];
      return width === 0 || height === 0
        ? []
        : [{ x: x - scrollOffsetX, y: y - scrollOffsetY, width, height }];
    });
    return [...own, ...(this.#children.get(node) ?? []).flatMap((child) => this.#areasOf(child))];
  }
}
