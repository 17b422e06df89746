/**
 * Whether an environment variable belongs to the service itself, to its database or to the AWS SDK: no document may name it. Asked
 * when a document is applied, and again when it is used: a row of the database may have come another way.
 */
export const isServiceVariable = (name: string): boolean => /^(LATCHKEY_|DATABASE_|PG|AWS_)/i.test(name);
