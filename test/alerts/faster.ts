// An alert rule with shorter times, so that a run sees it fire and resolve within a minute.

/** How much shorter, and what no time may be shorter than. */
export type Faster = { readonly by: number; readonly leastS: number };

const UNITS_S = { s: 1, m: 60, h: 3_600, d: 86_400 };

const secondsOf = (count: string, unit: string) => Number(count) * UNITS_S[unit as keyof typeof UNITS_S];

/**
 * Its `for`, `keep_firing_for` and windows, and what a metric in seconds is compared with. A time of 0 stays. None gets shorter than
 * `leastS`: within that time another replica leads, and Prometheus has a few samples.
 */
export function makeFaster(text: string, { by, leastS }: Faster): string {
  const shorter = (seconds: number) => (seconds === 0 ? 0 : Math.max(leastS, Math.round(seconds / by)));
  return text
    .replaceAll(
      /(\bfor: |_for: |\[|offset )(\d+)([smhd])\b/g,
      (_, before: string, count: string, unit: string) => `${before}${shorter(secondsOf(count, unit))}s`,
    )
    .replaceAll(
      /(_seconds\)? [<>]=? )(\d+)/g,
      (_, before: string, count: string) => `${before}${shorter(Number(count))}`,
    );
}
