// Limits that only end a hanging test grow with the machine. `npm test` measures it once and names the factor in TEST_PATIENCE;
// without that it is 1. Not for a limit that a test asserts: that is counted in answers, bytes or polls.

/** At least 1. */
export const PATIENCE = Math.max(1, Number(process.env['TEST_PATIENCE']) || 1);

/** How long to wait here for what takes less than `ms` on a quiet machine with two cores. */
export function patience(ms: number): number {
  return Math.round(ms * PATIENCE);
}
