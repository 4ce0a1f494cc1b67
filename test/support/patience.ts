// Limits that only end a hanging test grow with the machine. `npm test` measures it once and names the factor in TEST_PATIENCE;
// without that it is 1. What a test asserts is counted in answers, bytes or polls; where the clock itself is promised, see `promisedMs`.

/** At least 1. */
export const PATIENCE = Math.max(1, Number(process.env['TEST_PATIENCE']) || 1);

/** The factor is measured before the tests begin; then they keep the processors from each other. */
const BESIDE_OTHERS = 2;

/** How long to wait here for what takes less than `ms` on a quiet machine with two cores. */
export function patience(ms: number): number {
  return Math.round(ms * PATIENCE * BESIDE_OTHERS);
}

/**
 * For services under test: the usual one answers with 503 on a machine that is many times slower. At most what the service may be given.
 */
export const ANSWER_DEADLINE_MS = String(Math.min(9_500, promisedMs(5_000)));

/**
 * A limit of the clock that is itself what is promised, of a machine that keeps up. On a slower one it still tells a deadline from a
 * hang. CONTRIBUTING.md says how to list them.
 */
export function promisedMs(ms: number): number {
  return Math.round(ms * PATIENCE);
}
