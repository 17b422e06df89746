import type { StrategyField } from "#domain/strategy.ts";

/** A required text field without rules, but for what is given. */
export const strategyField = (more: Partial<StrategyField>): StrategyField => ({
  key: "value",
  label: "Value",
  type: "text",
  required: true,
  pattern: null,
  minLength: null,
  maxLength: null,
  placeholder: null,
  help: null,
  autocomplete: null,
  options: [],
  secret: false,
  ...more,
});
