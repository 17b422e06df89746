import { Anchor, NativeSelect, Text } from "@mantine/core";
import { Link, useSearchParams } from "wouter";
import { customerOf, othersOf } from "#domain/labels/customer.ts";
import type { Review } from "../parts/answers.ts";
import { listReviews } from "../api/operations.ts";
import { useRead } from "../api/queries.ts";
import { Beside } from "../parts/beside.tsx";
import { EmptyState } from "../parts/empty-state.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { Reading } from "../parts/reading.tsx";
import { Mark } from "../parts/run-status.tsx";
import { Time } from "../parts/time.tsx";

export function ReviewListPage() {
  const reviews = useRead(listReviews, {}, { live: true });
  return (
    <>
      <PageHead title="Reviews" about="Runs that await a decision." />
      <Reading of={reviews}>
        {({ items }) =>
          items.length === 0 ? (
            <EmptyState title="No open reviews">
              A Blueprint's node of the type <code>review</code> stops a run until somebody has looked at its
              records. When one does, it is here.
            </EmptyState>
          ) : (
            <OpenReviews reviews={items} />
          )
        }
      </Reading>
    </>
  );
}

const errorsOf = ({
  records_total: total,
  records_valid: valid,
}: Pick<Review, "records_total" | "records_valid">): number => total - valid;
/** Those that never time out come last. */
const endOf = ({ expires_at: at }: Review): number => (at === null ? Infinity : Date.parse(at));

/** The service lists them by their waiting time; all of them are here, and so are sorted here. */
const ORDERS: Readonly<Record<string, readonly [name: string, compare: (a: Review, b: Review) => number]>> = {
  "": ["Longest wait first", () => 0],
  newest: ["Newest first", (a, b) => Date.parse(b.created_at) - Date.parse(a.created_at)],
  expiry: ["Next to time out first", (a, b) => endOf(a) - endOf(b)],
  errors: ["Most errors first", (a, b) => errorsOf(b) - errorsOf(a)],
};

/** Open reviews, to choose from and to sort. Both are in the URL. */
function OpenReviews({ reviews }: { readonly reviews: readonly Review[] }) {
  const [search, setSearch] = useSearchParams();
  const set = (name: string, value: string): void =>
    setSearch((before) => {
      const after = new URLSearchParams(before);
      if (value === "") after.delete(name);
      else after.set(name, value);
      return after;
    });
  const given = (name: string): string => search.get(name) ?? "";
  const shown = reviews.filter(
    ({ blueprint, account, ...review }) =>
      [blueprint, ""].includes(given("blueprint")) &&
      [account, ""].includes(given("account")) &&
      (given("records") === "" || errorsOf(review) > 0),
  );
  const [, compare] = ORDERS[given("sort")] ?? ["", () => 0];
  const choiceOf = (label: string, name: "blueprint" | "account") => {
    const values = [...new Set([...reviews.map((review) => review[name]), given(name)])].filter(Boolean);
    if (values.length < 2) return null;
    return (
      <NativeSelect
        label={label}
        value={given(name)}
        onChange={(event) => set(name, event.currentTarget.value)}
        data={[{ value: "", label: "All" }, ...values.toSorted().map((value) => ({ value, label: value }))]}
      />
    );
  };
  return (
    <>
      {reviews.length > 1 && (
        <search className="filters" aria-label="Filters">
          {choiceOf("Blueprint", "blueprint")}
          {choiceOf("Account", "account")}
          <NativeSelect
            label="Records"
            value={given("records")}
            onChange={(event) => set("records", event.currentTarget.value)}
            data={[
              { value: "", label: "All" },
              { value: "errors", label: "With errors" },
            ]}
          />
          <NativeSelect
            label="Order"
            value={given("sort")}
            onChange={(event) => set("sort", event.currentTarget.value)}
            data={Object.entries(ORDERS).map(([value, [label]]) => ({ value, label }))}
          />
        </search>
      )}
      {shown.length === 0 ? (
        <EmptyState title="No reviews match">Try fewer filters.</EmptyState>
      ) : (
        <ReviewList reviews={shown.toSorted(compare)} />
      )}
    </>
  );
}

/** Until when a review can be decided, and what happens after that; nothing if it never times out. */
export function ReviewDeadline({ of: review }: { readonly of: Review }) {
  if (review.expires_at === null) return null;
  return (
    <>
      Decide by <Time at={review.expires_at} isDate />,{" "}
      {review.on_timeout === "approve" ? "or it is approved automatically" : "or the run fails"}
    </>
  );
}

export function ReviewList({ reviews }: { readonly reviews: readonly Review[] }) {
  if (reviews.length === 0) return null;
  return (
    <ul className="plain-list rows-card">
      {reviews.map((review) => (
        <li key={review.id} className="row-link kinded">
          <Text size="sm" component="div">
            <Mark tone="waiting">Review</Mark>
          </Text>
          <div>
            {/* Whose it is comes first: many reviews have the same title. */}
            <Text size="sm" className="any-break">
              <Anchor
                component={Link}
                href={`/reviews/${review.id}`}
                fw={600}
                size="sm"
                className="stretched any-break"
              >
                {review.run_name ?? review.title}
              </Anchor>
              <Beside of={whoseOf(review)} />
              <Text span c="dimmed" inherit>
                {" · "}
                <Time at={review.created_at} />
              </Text>
            </Text>
            <Text size="sm" c="dimmed" className="any-break">
              {countRecords(review)}
              {review.expires_at !== null && (
                <>
                  {" · "}
                  <ReviewDeadline of={review} />
                </>
              )}
              {" · "}
              {review.blueprint}
            </Text>
          </div>
          {/* The whole row leads there. */}
          <span className="next-step" aria-hidden="true">
            Open review
          </span>
        </li>
      ))}
    </ul>
  );
}

/** The customer, then other metadata. */
const whoseOf = ({ metadata }: Review): readonly (readonly [name: string, value: string])[] => {
  const customer = customerOf(metadata);
  return [...(customer === null ? [] : [["customer", customer] as const]), ...othersOf(metadata)];
};

export function countRecords({ records_total: total, records_valid: valid }: Review): string {
  const records = `${total} ${total === 1 ? "record" : "records"}`;
  return total === valid ? records : `${records}, ${total - valid} with errors`;
}
