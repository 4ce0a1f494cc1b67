// What a job costs: a fixed rate for each started minute of output. The interface fixes the two fields, in micro-units
// and in cents, but not the price.

/** A million micro-units are one dollar, so this is 0.6 cents. */
export const MICROS_PER_MINUTE = 6_000;

const MICROS_PER_CENT = 10_000;

/** Cents are rounded up. An output of no length costs one minute. */
export function costOf(mediaSeconds: number): { cost_micros: number; cost_cents: number } {
  const minutes = Math.max(1, Math.ceil(mediaSeconds / 60));
  const cost_micros = minutes * MICROS_PER_MINUTE;
  return { cost_micros, cost_cents: Math.ceil(cost_micros / MICROS_PER_CENT) };
}
