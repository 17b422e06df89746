/**
 * Seeds that have found something. 9: runs behind one whose cancel stood still were not admitted. 485: a write ended before it began, when
 * the clock was set back. 679: a worker that came back settled a write that an operator was asked about, and nothing resumed the run.
 * 1529: the simulated store refused to remove nothing, so runs that were to queue waited for it in their own time.
 * 4609: requests that the target took in together had been sent at their slots: a connection took longer than a slot.
 * 7050: a request followed its slot late, after three statements to a database that was up to 1.5 s away.
 */
export const KEPT_SEEDS: readonly number[] = [9, 485, 679, 1529, 4609, 7050];
