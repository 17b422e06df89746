/**
 * Counts the delimiters of a multipart body as it arrives: one before each part and one at the end (RFC 2046, 5.1.1; they occur
 * nowhere else). The parser silently skips a part without a name; only the count shows it.
 */
export function countDelimiters(boundary: string): { add(chunk: Buffer): void; readonly count: number } {
  const delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
  // The first delimiter needs no line break before it.
  let tail: Buffer = Buffer.from("\r\n", "latin1");
  let count = 0;
  return {
    add: (chunk) => {
      // A delimiter may span two chunks. The remainder that is kept is shorter than a delimiter and does not contain one.
      const border = Buffer.concat([tail, chunk.subarray(0, delimiter.length - 1)]);
      count += occurrences(border, delimiter) + occurrences(chunk, delimiter);
      tail = Buffer.concat([tail, chunk.subarray(-delimiter.length)]).subarray(1 - delimiter.length);
    },
    get count() {
      return count;
    },
  };
}

function occurrences(bytes: Buffer, needle: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + needle.length)) count++;
  return count;
}
