import type { Json } from "#domain/json.ts";

/** An exact decimal: `units` × 10^-`scale`. */
interface Decimal {
  readonly units: bigint;
  readonly scale: number;
}

const DIGITS_MAX = 100;
const TEXT = new RegExp(`^[+-]?\\d{1,${DIGITS_MAX}}(?:\\.\\d{1,${DIGITS_MAX}})?$`);

/**
 * Reads a number or a decimal string (`"-12.50"`); null: it is neither. A number has the value of its JSON text: 0.1 is exactly a
 * tenth.
 */
export function readDecimal(value: Json): Decimal | null {
  if (typeof value === "number") return decimalOf(String(value));
  if (typeof value !== "string") return null;
  const text = value.trim();
  return TEXT.test(text) ? decimalOf(text) : null;
}

function decimalOf(text: string): Decimal {
  const [mantissa = "", exponent = "0"] = text.split("e");
  const [whole = "", fraction = ""] = mantissa.replace(/^\+/, "").split(".");
  const scale = fraction.length - Number(exponent);
  const units = BigInt(whole + fraction);
  return scale >= 0 ? { units, scale } : { units: units * 10n ** BigInt(-scale), scale: 0 };
}

/** Adds numbers and decimal strings without rounding. */
export class ExactSum {
  #sum: Decimal | null = null;
  #hasText = false;

  /** Adds a value that `readDecimal` accepts. */
  add(value: Json, read: Decimal): void {
    this.#hasText ||= typeof value === "string";
    this.#sum = this.#sum === null ? read : added(this.#sum, read);
  }

  /**
   * For numbers only, the number nearest to the exact sum. If a string is among them, the sum as a string with as many decimal
   * places as the longest. Null: nothing was added. Infinity: the sum is too large for a number.
   */
  get(): number | string | null {
    if (this.#sum === null) return null;
    const text = textOf(this.#sum);
    return this.#hasText ? text : Number(text);
  }
}

function added(left: Decimal, right: Decimal): Decimal {
  const scale = Math.max(left.scale, right.scale);
  return { units: unitsAt(left, scale) + unitsAt(right, scale), scale };
}

const unitsAt = ({ units, scale }: Decimal, wanted: number): bigint =>
  wanted === scale ? units : units * 10n ** BigInt(wanted - scale);

function textOf({ units, scale }: Decimal): string {
  const digits = String(units < 0n ? -units : units).padStart(scale + 1, "0");
  const sign = units < 0n ? "-" : "";
  const end = digits.length - scale;
  return scale === 0 ? sign + digits : `${sign}${digits.slice(0, end)}.${digits.slice(end)}`;
}
