import type { OxlintConfig } from "oxlint";
import { FENCES, LAYERS, SMALL_PLACES, type Fence, type Place } from "./layers.ts";

type Rules = NonNullable<OxlintConfig["rules"]>;
type Restriction = {
  regex: string;
  message: string;
  importNames?: string[];
  allowTypeImports?: true;
};
type Spot = { name: Place; within: Place; files: readonly string[]; mayImport: readonly string[] };

const FOLDERS: readonly string[] = LAYERS.map((layer) => layer.folder);

/** Every place with rules of its own, the smaller after the larger, because the last override wins. */
function spots(): Spot[] {
  const large: Spot[] = LAYERS.map(({ folder, mayImport }) => ({
    name: folder,
    within: folder,
    files: [`src/${folder}/**`],
    mayImport,
  }));
  const small = SMALL_PLACES.flatMap((place) =>
    large
      .filter((spot) => spot.name === place.within)
      .map((spot) => ({ ...place, mayImport: spot.mayImport })),
  );
  return [...large, ...small];
}

/** Whether a fence lets this place use what it guards. */
function isOpenFor(fence: Fence, spot: { name: Place; within: Place }): boolean {
  const listed = "only" in fence.where ? fence.where.only : fence.where.except;
  const isListed = listed.includes(spot.name) || listed.includes(spot.within);
  return "only" in fence.where ? isListed : !isListed;
}

/** Whether a place may at least import the types of what a fence guards. */
function mayImportTypes(fence: Fence, spot: { name: Place; within: Place }): boolean {
  const { typesIn = [] } = fence;
  return typesIn === "everywhere" || typesIn.includes(spot.name) || typesIn.includes(spot.within);
}

function placeNames(places: readonly Place[]): string {
  const names = places.map((place) => (place.endsWith(".ts") || place.includes("/") ? place : `${place}/`));
  return names.length === 0 ? "nowhere" : names.join(", ");
}

/** "only in db/: the reason", for messages and for the documentation. */
export function fenceRule(fence: Fence): string {
  const where =
    "only" in fence.where
      ? `only in ${placeNames(fence.where.only)}`
      : `not in ${placeNames(fence.where.except)}`;
  return `${where.replace("only in nowhere", "nowhere")}${typesRule(fence)}: ${fence.why}`;
}

function typesRule({ typesIn }: Fence): string {
  if (typesIn === undefined) return "";
  return typesIn === "everywhere" ? " (types everywhere)" : ` (types also in ${placeNames(typesIn)})`;
}

function layerRestrictions(spot: Spot): Restriction[] {
  const forbidden = FOLDERS.filter((folder) => folder !== spot.within && !spot.mayImport.includes(folder));
  const names = spot.mayImport.length === 0 ? "nothing" : spot.mayImport.join(", ");
  return [
    {
      regex: `^#(${forbidden.join("|")})/`,
      message: `${spot.within}/ may import ${names} (scripts/layers.ts)`,
    },
    { regex: "(^|/)\\.\\.($|/)", message: "Across folders import `#layer/file.ts`, never `../`" },
    { regex: "^(/|file:|data:)", message: "Import `./file.ts`, `#layer/file.ts` or a package" },
  ];
}

function moduleRestrictions(fence: Fence, spot: Spot): Restriction[] {
  const message = `${fence.what}: ${fenceRule(fence)}`;
  const rest = mayImportTypes(fence, spot) ? { message, allowTypeImports: true as const } : { message };
  const whole = (fence.modules ?? []).map((regex): Restriction => ({ regex, ...rest }));
  const named = (fence.names ?? []).map(({ modules, names }): Restriction => {
    return { regex: modules, importNames: [...names], ...rest };
  });
  return [...whole, ...named];
}

function placeRules(spot: Spot): Rules {
  const closed = FENCES.filter((fence) => !isOpenFor(fence, spot));
  const message = (fence: Fence): string => `${fence.what}: ${fenceRule(fence)}`;
  const restrictions = [
    ...layerRestrictions(spot),
    ...closed.flatMap((fence) => moduleRestrictions(fence, spot)),
  ];
  const globals = closed.flatMap((fence) =>
    (fence.globals ?? []).map((name) => ({ name, message: message(fence) })),
  );
  const properties = closed.flatMap((fence) =>
    (fence.properties ?? []).map((property) => ({ ...property, message: message(fence) })),
  );
  return {
    "no-restricted-imports": ["error", { patterns: restrictions }],
    "no-restricted-globals": ["error", ...globals],
    "no-restricted-properties": ["error", ...properties],
  };
}

/** What holds in every file: the habits of CONTRIBUTING.md that a tool can check. */
const EVERYWHERE: Rules = {
  "import/no-cycle": ["error", { ignoreTypes: false }],
  "import/no-self-import": "error",
  "import/no-duplicates": "error",
  "import/no-default-export": "error",
  "max-lines": ["error", { max: 400 }],
  "max-lines-per-function": ["error", { max: 70, skipBlankLines: true, skipComments: true }],
  "no-eval": "error",
  "no-new-func": "error",
  eqeqeq: "error",
  "typescript/no-implied-eval": "error",
  "typescript/no-explicit-any": "error",
  "typescript/no-non-null-assertion": "error",
  "typescript/consistent-type-imports": "error",
  "typescript/ban-ts-comment": "error",
  "typescript/no-floating-promises": "error",
  "typescript/no-misused-promises": "error",
  "typescript/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
  // Not of use here: we check texts for control characters, and group long lists by spreading.
  "no-control-regex": "off",
  "unicorn/no-useless-spread": "off",
};

/** `test()` and `describe()` of node:test return promises that the runner itself waits for. */
const TESTS: Rules = {
  "max-lines-per-function": "off",
  // What an outsider reads off the wire has no type.
  "typescript/no-explicit-any": "off",
  // An assertion on "[object Object]" fails by itself.
  "typescript/no-base-to-string": "off",
  "typescript/no-floating-promises": [
    "error",
    {
      allowForKnownSafeCalls: [
        {
          from: "package",
          package: "node:test",
          name: ["test", "it", "describe", "suite", "before", "after"],
        },
      ],
    },
  ],
};

/** The dashboard knows the service by the types of its contract, and by nothing that exists at run time. */
const DASHBOARD: Rules = {
  "no-restricted-imports": [
    "error",
    {
      patterns: [
        {
          regex: "^#contract/|^#domain/[^/]+$",
          allowTypeImports: true,
          message:
            "ui/ may import types of contract/ and domain/, the words of domain/labels/, and nothing else of the service",
        },
        {
          regex: `^#(${FOLDERS.filter((folder) => folder !== "contract" && folder !== "domain").join("|")})/`,
          message: "ui/ may import types of contract/ and domain/ alone",
        },
        { regex: "(^|/)src/", message: "ui/ imports the contract's types as `#contract/…`" },
        { regex: "^node:", message: "ui/ runs in browsers" },
      ],
    },
  ],
  "no-restricted-globals": [
    "error",
    { name: "process", message: "ui/ runs in browsers" },
    { name: "XMLHttpRequest", message: "ui/api/request.ts is the one way to the service" },
    { name: "localStorage", message: "what an operator saw stays in the page" },
    { name: "sessionStorage", message: "what an operator saw stays in the page" },
  ],
  "react/no-danger": "error",
  "react/jsx-no-target-blank": "error",
  "react/rules-of-hooks": "error",
  "react/jsx-key": "error",
  // The one field of a step that has taken the place of the step before.
  "jsx-a11y/no-autofocus": "off",
  // What scrolls must be reached by keyboard (WCAG 2.1.1).
  "jsx-a11y/no-noninteractive-tabindex": "off",
  // Takes an empty cell of a table for a control.
  "jsx-a11y/control-has-associated-label": "off",
  // Of React's compiler, which is not used.
  "react/incompatible-library": "off",
};

/** What `oxlint.config.ts` gives the linter: the habits, and the layers and fences of `layers.ts`. */
export function lintConfig(): OxlintConfig {
  return {
    plugins: ["eslint", "typescript", "unicorn", "oxc", "import", "node", "promise"],
    categories: { correctness: "error" },
    rules: EVERYWHERE,
    ignorePatterns: ["node_modules", "spec", ".cache", ".latchkey", "ui/built"],
    overrides: [
      ...spots().map((spot) => ({ files: [...spot.files], rules: placeRules(spot) })),
      {
        files: ["ui/**"],
        plugins: ["eslint", "typescript", "unicorn", "oxc", "import", "promise", "react", "jsx-a11y"],
        rules: DASHBOARD,
      },
      { files: ["test/**"], rules: TESTS },
      // As long as the API is: it is written by `npm run generate`.
      { files: ["sdk/typescript/src/api-types.ts"], rules: { "max-lines": "off" } },
      // The linter reads its configuration from there.
      { files: ["oxlint.config.ts"], rules: { "import/no-default-export": "off" } },
    ],
  };
}
