import { Fragment } from "react";

/** Shorter ones, such as an order's number, stay on one line. */
const SHORT = 24;

/** What else there is to say of something, after its name: "· Northwind · PO-7". `title`: what it is. */
export const Beside = ({ of }: { readonly of: readonly (readonly [title: string, text: string])[] }) =>
  of.map(([title, text]) => (
    <Fragment key={title}>
      {" · "}
      <span title={title} className={text.length < SHORT ? "no-wrap" : ""}>
        {text}
      </span>
    </Fragment>
  ));
