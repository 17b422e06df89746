import { Button, Menu } from "@mantine/core";
import { Fragment, useState, type ReactNode } from "react";

/** Something that can be done with a row, in a dialog of its own. */
export interface RowAction {
  readonly label: string;
  /** What it does takes something away. */
  readonly isDanger?: boolean;
  readonly dialog: (state: { readonly isOpen: boolean; readonly onClose: () => void }) => ReactNode;
}

/** What can be done with a row, behind one button: rows stay one line high, and their buttons don't compete. */
export function RowMenu({ of, actions }: { readonly of: string; readonly actions: readonly RowAction[] }) {
  const [asked, setAsked] = useState<string | null>(null);
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <Button size="compact-sm" variant="default" aria-label={`Actions for ${of}`}>
            <span aria-hidden="true">•••</span>
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {actions.map(({ label, isDanger }) => (
            <Menu.Item
              key={label}
              className={isDanger === true ? "danger" : ""}
              onClick={() => setAsked(label)}
            >
              {label}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {/* Beside the menu: it takes the arrow keys of what is in it. */}
      {actions.map(({ label, dialog }) => (
        <Fragment key={label}>{dialog({ isOpen: asked === label, onClose: () => setAsked(null) })}</Fragment>
      ))}
    </>
  );
}
