import type { EventData } from "node:test";

/** A test as it ended. */
export interface TestRecord {
  /** The names of its suites and its own, from the path of its file on. */
  readonly path: readonly string[];
  readonly outcome: "passed" | "failed" | "skipped";
}

/** A file whose last test has ended, and was told of. */
export interface FileRecord {
  readonly ended: string;
}

type TestEvent =
  | { readonly type: "test:start"; readonly data: EventData.TestStart }
  | { readonly type: "test:pass"; readonly data: EventData.TestPass }
  | { readonly type: "test:fail"; readonly data: EventData.TestFail };

/** A reporter for node's test runner: a line of JSON for each test, and for each file. Suites are no tests; a file is one. */
export async function* recordTests(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  // The runner reports one file after the other, whatever runs at once, and of a suite's start before its tests.
  const path: string[] = [];
  for await (const { type, data } of source) {
    if (type === "test:start") {
      path.length = data.nesting;
      path.push(data.name);
    } else if ((type === "test:pass" || type === "test:fail") && data.details.type !== "suite") {
      const failed = type === "test:fail" && data.todo === undefined;
      const outcome = failed ? "failed" : data.skip === undefined ? "passed" : "skipped";
      const record: TestRecord = { path: [...path.slice(0, data.nesting), data.name], outcome };
      yield `${JSON.stringify(record)}\n`;
    } else if ((type === "test:pass" || type === "test:fail") && data.nesting === 0) {
      const record: FileRecord = { ended: data.name };
      yield `${JSON.stringify(record)}\n`;
    }
  }
}
