// What a job costs: a flat rate for each started minute of output. The interface says how a cost is told, in
// micro-units and in cents, and not what is paid for.

/** A million micro-units are a dollar, ten thousand are a cent: six tenths of a cent a minute. */
export const MICROS_PER_MINUTE = 6_000;

const MICROS_PER_CENT = 10_000;

/** Cents are the micro-units, rounded up. An output of no length costs a minute. */
export function costOf(mediaSeconds: number): { cost_micros: number; cost_cents: number } {
  const minutes = Math.max(1, Math.ceil(mediaSeconds / 60));
  const cost_micros = minutes * MICROS_PER_MINUTE;
  return { cost_micros, cost_cents: Math.ceil(cost_micros / MICROS_PER_CENT) };
}
