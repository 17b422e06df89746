const CONSTRUCTORS = [
  ...[Object, Function, Array, String, Number, Boolean, Symbol, BigInt, RegExp, Date, Promise],
  ...[Map, Set, WeakMap, WeakSet, WeakRef, ArrayBuffer, DataView, Uint8Array, Float64Array, Iterator],
  ...[Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError, AggregateError],
];

/** Freezes this thread's intrinsics, so that no task can affect later ones. Load polyfills first. */
export function freezeIntrinsics(): void {
  // Assigning to a name that exists on a frozen prototype would fail, and data may have a key `constructor`.
  for (const name of Object.getOwnPropertyNames(Object.prototype)) letOverride(Object.prototype, name);
  // jsonata sets `push` on each of its sequences.
  letOverride(Array.prototype, "push");
  for (const name of ["name", "message", "toString"]) letOverride(Error.prototype, name);
  for (const constructor of CONSTRUCTORS) {
    Object.freeze(constructor.prototype);
    Object.freeze(constructor);
  }
  const unnamed = [
    async () => {},
    function* () {},
    async function* () {},
    [].values(),
    new Map().values(),
    "".matchAll(/x/g),
  ];
  for (const value of unnamed) Object.freeze(Object.getPrototypeOf(value));
  for (const namespace of [Math, JSON, Reflect, Atomics]) Object.freeze(namespace);
}

/** Makes an inherited property assignable on derived objects, as before the freeze. */
function letOverride(prototype: object, name: string): void {
  const property = Object.getOwnPropertyDescriptor(prototype, name);
  if (property === undefined || !("value" in property)) return;
  const value: unknown = property.value;
  Object.defineProperty(prototype, name, {
    enumerable: false,
    configurable: false,
    get: () => value,
    set(this: object, replacement: unknown) {
      if (this === prototype) throw new TypeError("frozen");
      Object.defineProperty(this, name, {
        value: replacement,
        writable: true,
        enumerable: true,
        configurable: true,
      });
    },
  });
}
