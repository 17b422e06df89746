/**
 * Unpacks the packaged Chromium into the temporary directory and prints where its program is. A process of its own, because
 * the package knows no other place than `os.tmpdir()`: `chromium.ts` gives it a private one in TMPDIR.
 */
import { fileURLToPath } from "node:url";
import chromium, { inflate } from "@sparticuz/chromium";

const [executable] = await Promise.all([
  chromium.executablePath(),
  // The shared libraries that a bare system lacks, among them libnss3. The package unpacks them on AWS only.
  inflate(fileURLToPath(new URL("../bin/al2023.tar.br", import.meta.resolve("@sparticuz/chromium")))),
]);
console.log(executable);
