import type { Schedule, ScheduleRequest } from "./api-types.ts";
import type { Connection, RequestOptions } from "./connection.ts";

/** Runs that begin by the clock. `key` is yours, such as one per connection. */
export class Schedules {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Creates or replaces the schedule; the same request again changes nothing. */
  async put(key: string, schedule: ScheduleRequest, options?: RequestOptions): Promise<Schedule> {
    return await this.#connection.json({
      operation: "putSchedule",
      parameters: { scheduleKey: key },
      body: schedule,
      options,
    });
  }

  /** Throws NotFoundError if there is none. */
  async read(key: string, options?: RequestOptions): Promise<Schedule> {
    return await this.#connection.json({
      operation: "readSchedule",
      parameters: { scheduleKey: key },
      options,
    });
  }

  /** Runs that it began go on. Throws NotFoundError if there is none. */
  async delete(key: string, options?: RequestOptions): Promise<void> {
    await this.#connection.send(
      { operation: "deleteSchedule", parameters: { scheduleKey: key }, options },
      async (response) => await response.text(),
    );
  }
}
