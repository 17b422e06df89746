/**
 * Whether an environment variable belongs to the service itself, to its database or to the AWS SDK: no document may refer to it. Checked
 * when a document is applied, and again when it is used, because a row may have been written to the database directly.
 */
export const isServiceVariable = (name: string): boolean => /^(LATCHKEY_|DATABASE_|PG|AWS_)/i.test(name);
