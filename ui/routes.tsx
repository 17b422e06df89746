import { lazy, type ComponentType } from "react";

/** The groups of the navigation, in their order. */
export const GROUPS = ["Work", "Set up", "Manage"] as const;

export interface Route {
  /** Below `/dashboard`; a page reads its parameters with `useParams`. */
  readonly path: string;
  readonly title: string;
  /** What a role must have to see the page and the link to it; `null`: everybody. */
  readonly permission: string | null;
  /** Where the navigation lists it, with the key that goes there after `g`; left out: nowhere. */
  readonly nav?: { readonly group: (typeof GROUPS)[number]; readonly key: string };
  readonly page: ComponentType;
}

/** Loaded when somebody goes there. */
const page = (load: () => Promise<ComponentType>): ComponentType =>
  lazy(async () => ({ default: await load() }));

/** Every page: one line a page, one file a page. Put the more special path first. */
export const ROUTES: readonly Route[] = [
  {
    path: "/",
    title: "Overview",
    permission: null,
    nav: { group: "Work", key: "o" },
    page: page(async () => (await import("./pages/overview.tsx")).OverviewPage),
  },
  {
    path: "/runs",
    title: "Runs",
    permission: "run.read",
    nav: { group: "Work", key: "r" },
    page: page(async () => (await import("./pages/run-list.tsx")).RunListPage),
  },
  {
    path: "/runs/:runId",
    title: "Run",
    permission: "run.read",
    page: page(async () => (await import("./pages/run.tsx")).RunPage),
  },
  {
    path: "/reviews",
    title: "Reviews",
    permission: "review.read",
    nav: { group: "Work", key: "v" },
    page: page(async () => (await import("./pages/review-list.tsx")).ReviewListPage),
  },
  {
    path: "/reviews/:reviewId",
    title: "Review",
    permission: "review.read",
    page: page(async () => (await import("./pages/review.tsx")).ReviewPage),
  },
  {
    path: "/me",
    title: "Your sign-in",
    permission: null,
    page: page(async () => (await import("./pages/own-sign-in.tsx")).OwnSignInPage),
  },
];
