import { mulberry32 } from "./random.ts";

/** What was ordered: the portal knows it. */
interface PurchaseOrder {
  readonly number: string;
  readonly article: string;
  readonly quantity: number;
  readonly unit_price: number;
}

/** What was billed: the ledger knows it. */
interface TradeInvoice {
  readonly number: string;
  readonly order: string;
  readonly quantity: number;
  readonly unit_price: number;
}

/** What has arrived: the ledger's warehouse knows it. */
interface Receipt {
  readonly number: string;
  readonly order: string;
  readonly quantity: number;
}

export interface Trade {
  readonly orders: readonly PurchaseOrder[];
  readonly invoices: readonly TradeInvoice[];
  readonly receipts: readonly Receipt[];
}

export const TRADE_COUNT = 40;
/** Which invoices don't match, and how; the same for every seed. */
export const MISMATCHES = { dearer: 7, moreThanArrived: 13, unknownOrder: 21, notArrived: 30 } as const;

/** Forty orders, each billed and received once, but for four. */
export function generateTrade(seed: number): Trade {
  const random = mulberry32(seed);
  const numbered = (prefix: string, index: number) => `${prefix}-${String(index + 1).padStart(4, "0")}`;
  const orders = Array.from({ length: TRADE_COUNT }, (_, index) => ({
    number: numbered("PO-2026", index),
    article: `AB-${100 + Math.floor(random() * 900)}`,
    quantity: 1 + Math.floor(random() * 60),
    unit_price: Math.round(100 + random() * 9_900) / 100,
  }));
  const invoices = orders.map(({ number: order, quantity, unit_price }, index) => ({
    number: numbered("RE", index),
    order: index === MISMATCHES.unknownOrder ? "PO-2019-9999" : order,
    quantity: index === MISMATCHES.moreThanArrived ? quantity + 5 : quantity,
    unit_price: index === MISMATCHES.dearer ? Math.round((unit_price + 1.5) * 100) / 100 : unit_price,
  }));
  const receipts = orders.flatMap(({ number: order, quantity }, index) =>
    index === MISMATCHES.notArrived ? [] : [{ number: numbered("WE", index), order, quantity }],
  );
  return { orders, invoices, receipts };
}
