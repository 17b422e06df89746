import type { StepKind } from "#answers/browser/define-step.ts";
import { back } from "./back.ts";
import { check } from "./check.ts";
import { click } from "./click.ts";
import { commit } from "./commit.ts";
import { dialog } from "./dialog.ts";
import { dismiss } from "./dismiss.ts";
import { download } from "./download.ts";
import { each } from "./each.ts";
import { expect } from "./expect.ts";
import { extract } from "./extract.ts";
import { fill } from "./fill.ts";
import { goto } from "./goto.ts";
import { hover } from "./hover.ts";
import { popup } from "./popup.ts";
import { press } from "./press.ts";
import { reload } from "./reload.ts";
import { repeat } from "./repeat.ts";
import { screenshot } from "./screenshot.ts";
import { select } from "./select.ts";
import { type } from "./type.ts";
import { uncheck } from "./uncheck.ts";
import { upload } from "./upload.ts";
import { wait } from "./wait.ts";
import { when } from "./when.ts";

/** Every kind of step, in the order of the documentation. To add one, add a file and a line here. */
export const stepKinds: readonly StepKind[] = [
  goto,
  fill,
  type,
  click,
  check,
  uncheck,
  select,
  press,
  hover,
  wait,
  expect,
  dismiss,
  dialog,
  when,
  repeat,
  each,
  extract,
  download,
  upload,
  screenshot,
  commit,
  popup,
  back,
  reload,
];

const byName: ReadonlyMap<string, StepKind> = new Map(stepKinds.map((kind) => [kind.kind, kind]));

/** The kinds whose keys a step has. A step that `apply` accepted has exactly one. */
export const kindsOf = (step: Readonly<Record<string, unknown>>): readonly StepKind[] =>
  Object.keys(step).flatMap((key) => byName.get(key) ?? []);
