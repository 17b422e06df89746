import { mulberry32 } from "./random.ts";

export interface Invoice {
  /** Empty in the one invoice that came in without a number. */
  readonly number: string;
  readonly supplier: string;
  /** YYYY-MM-DD */
  readonly due_date: string;
  readonly currency: string;
  /** Decimal text with two decimals, as accounting systems send it: never a float. */
  readonly total: string;
  readonly status: "open" | "paid" | "disputed";
  readonly purchase_order: string;
}

export const INVOICE_COLUMNS = [
  "number",
  "supplier",
  "due_date",
  "currency",
  "total",
  "status",
  "purchase_order",
] as const;

interface Supplier {
  readonly name: string;
  readonly currency: string;
}

const MONTHS = 24;
const INVOICES_PER_MONTH = 10;
export const INVOICE_COUNT = MONTHS * INVOICES_PER_MONTH;
export const DEFAULT_SEED = 20_250_101;

/** Where the three invoices stand that break a rule of the example Blueprint; the same for every seed. */
export const RULE_BREAKERS = { negativeTotal: 36, withoutNumber: 121, dueBefore2020: 207 } as const;

// Names with commas, quotes, angle brackets and umlauts: a reader that gets CSV or HTML escaping wrong shows it here.
const SUPPLIERS: readonly [Supplier, ...Supplier[]] = [
  { name: "Alder & Finch Packaging", currency: "GBP" },
  { name: "Baxter, Hale and Sons", currency: "GBP" },
  { name: "Cobalt Freight Lines", currency: "USD" },
  { name: 'Dock "Seven" Logistics', currency: "USD" },
  { name: "Ebner Präzisionsteile", currency: "EUR" },
  { name: "Fjordlys Belysning", currency: "EUR" },
  { name: "Gruppo Lanterna", currency: "EUR" },
  { name: "Harrow <Office> Supply", currency: "USD" },
  { name: "Isla Verde Produce", currency: "EUR" },
  { name: "Jansen's Koffie", currency: "EUR" },
  { name: "Kestrel Print Works", currency: "GBP" },
  { name: "Lumen Electrical", currency: "USD" },
];
const STATUSES = ["paid", "paid", "open", "open", "open", "disputed"] as const;

/** The same seed gives the same 240 invoices on every machine, on every day. In due order, but for the rule breaker. */
export function generateInvoices(seed: number = DEFAULT_SEED): readonly Invoice[] {
  const random = mulberry32(seed);
  const below = (count: number) => Math.floor(random() * count);
  const pick = <T>(list: readonly [T, ...T[]]): T => list[below(list.length)] ?? list[0];
  const invoices: Invoice[] = [];
  for (let month = 0; month < MONTHS; month += 1) {
    const year = 2025 + Math.floor(month / 12);
    const days = Array.from({ length: INVOICES_PER_MONTH }, () => 1 + below(28)).sort((a, b) => a - b);
    for (const day of days) {
      const supplier = pick(SUPPLIERS);
      invoices.push({
        number: `INV-${year}-${String((invoices.length % (INVOICES_PER_MONTH * 12)) + 1).padStart(4, "0")}`,
        supplier: supplier.name,
        due_date: `${year}-${String((month % 12) + 1).padStart(2, "0")}-${String(day).padStart(2, "0")}`,
        currency: supplier.currency,
        total: decimal(1_500 + below(below(10) === 0 ? 2_500_000 : 250_000)),
        status: pick(STATUSES),
        purchase_order: `PO-${10_000 + below(90_000)}`,
      });
    }
  }
  return invoices.map(breakRule);
}

function breakRule(invoice: Invoice, index: number): Invoice {
  if (index === RULE_BREAKERS.negativeTotal) return { ...invoice, total: `-${invoice.total}` };
  if (index === RULE_BREAKERS.withoutNumber) return { ...invoice, number: "" };
  if (index === RULE_BREAKERS.dueBefore2020)
    return { ...invoice, due_date: `2019${invoice.due_date.slice(4)}` };
  return invoice;
}

/** RFC 4180: CRLF, a header row, quotes where a value needs them. */
export function invoicesCsv(invoices: readonly Invoice[]): string {
  const cell = (text: string) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const rows = invoices.map((invoice) => INVOICE_COLUMNS.map((column) => cell(invoice[column])).join(","));
  return [INVOICE_COLUMNS.join(","), ...rows, ""].join("\r\n");
}

const decimal = (cents: number): string =>
  `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, "0")}`;
