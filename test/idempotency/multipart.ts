export interface Part {
  readonly name: string;
  readonly content: string;
  readonly filename?: string;
  readonly type?: string;
}

/** A multipart body by hand, so that its boundary, order and preamble are the test's. */
export function multipart(
  boundary: string,
  parts: readonly Part[],
  preamble = "",
): { readonly body: string; readonly type: string } {
  const texts = parts.map(
    ({ name, content, filename, type }) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${filename === undefined ? "" : `; filename="${filename}"`}\r\n` +
      `${type === undefined ? "" : `Content-Type: ${type}\r\n`}\r\n${content}\r\n`,
  );
  return {
    body: `${preamble}${texts.join("")}--${boundary}--\r\n`,
    type: `multipart/form-data; boundary=${boundary}`,
  };
}
