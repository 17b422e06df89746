import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useState, type ReactNode } from "react";
import type { OperatorAnswer, OperatorOperation } from "#contract/operator/operation.ts";
import { useOperation } from "../api/queries.ts";
import type { Endpoint, InputOf } from "../api/request.ts";
import { Confirm } from "./confirm.tsx";
import { proposedIn, sayProposed } from "./proposed.ts";

/** How prominent a button is; that of a danger is red, and not filled. */
const lookOf = (of: { readonly isPrimary?: boolean; readonly isDanger?: boolean }) =>
  of.isDanger === true
    ? { variant: "default", className: "danger" }
    : { variant: of.isPrimary === true ? "filled" : "default" };

/** An operation that needs a confirmation. */
interface Asked<O extends OperatorOperation> {
  readonly to: Endpoint<O>;
  readonly input: InputOf<O>;
  readonly changes: readonly (readonly unknown[])[];
  readonly title: string;
  readonly action: string;
  /** The message when it is done. */
  readonly done: string | ((answer: OperatorAnswer<O>) => string);
  readonly onDone?: (answer: OperatorAnswer<O>) => void;
  readonly children: ReactNode;
  /** Whether nothing is taken away. */
  readonly isHarmless?: boolean;
}

/** Asks, does it, and says so. */
export function AskDialog<O extends OperatorOperation>(
  props: Asked<O> & { readonly isOpen: boolean; readonly onClose: () => void },
) {
  const sayDone = (answer: OperatorAnswer<O>): string =>
    typeof props.done === "string" ? props.done : props.done(answer);
  const doing = useOperation(props.to, {
    changes: props.changes,
    onDone: (answer) => {
      props.onClose();
      props.onDone?.(answer);
      const proposed = proposedIn(answer);
      notifications.show({ message: proposed ? sayProposed(proposed) : sayDone(answer) });
    },
  });
  return (
    <Confirm
      isOpen={props.isOpen}
      title={props.title}
      action={props.action}
      isHarmless={props.isHarmless === true}
      isBusy={doing.isPending}
      failure={doing.failure}
      onConfirm={() => doing.mutate(props.input)}
      onClose={props.onClose}
    >
      {props.children}
    </Confirm>
  );
}

/** A button for an operation that needs a confirmation. */
export function AskButton<O extends OperatorOperation>(
  props: Asked<O> & {
    /** The text of the button; screen readers also read `of`. */
    readonly label: string;
    readonly of?: string;
    readonly size?: "xs" | "sm";
    /** The recommended step: one on a page. */
    readonly isPrimary?: boolean;
    /** What it does can't be undone. */
    readonly isDanger?: boolean;
  },
) {
  const [isAsking, setIsAsking] = useState(false);
  return (
    <>
      <Button
        {...lookOf(props)}
        size={props.size ?? "xs"}
        {...(props.of === undefined ? {} : { "aria-label": `${props.label} ${props.of}` })}
        onClick={() => setIsAsking(true)}
      >
        {props.label}
      </Button>
      <AskDialog {...props} isOpen={isAsking} onClose={() => setIsAsking(false)} />
    </>
  );
}
