import { PinoPretty as pretty } from "pino-pretty";

/** Log lines for people, on standard error. */
export function pinoPretty(): NodeJS.WritableStream & { write(text: string): void } {
  return pretty({ destination: 2, sync: true, translateTime: "SYS:HH:MM:ss.l", ignore: "pid,hostname" });
}
