// A target, its floor, and what a run says of both. Below a floor the work is not done; between floor and target the costs of an
// event have to say why. Pure.

export type Verdict = 'target met' | 'floor met' | 'missed';

export type Target = {
  readonly name: string;
  readonly floor: string;
  readonly target: string;
  /** Undefined if it was not measured. */
  readonly found: string | undefined;
  readonly verdict: Verdict | undefined;
  readonly from: string;
};

export type Limits = {
  readonly direction: 'at least' | 'at most';
  readonly floor: number;
  readonly target: number;
};

export const atLeast = (floor: number, target = floor): Limits => ({ direction: 'at least', floor, target });
export const atMost = (floor: number, target = floor): Limits => ({ direction: 'at most', floor, target });

export function verdictOf(value: number, { direction, floor, target }: Limits): Verdict {
  const reaches = (limit: number) => (direction === 'at least' ? value >= limit : value <= limit);
  return reaches(target) ? 'target met' : reaches(floor) ? 'floor met' : 'missed';
}

/** `show` writes a value with its unit. Without a value it was not measured. */
export function judge(
  name: string,
  limits: Limits,
  options: { value: number | undefined; from: string; show: (value: number) => string },
): Target {
  const { value, from, show } = options;
  const sign = limits.direction === 'at least' ? '≥' : '≤';
  const wanted = {
    name,
    floor: `${sign} ${show(limits.floor)}`,
    target: `${sign} ${show(limits.target)}`,
  };
  if (value === undefined || Number.isNaN(value))
    return { ...wanted, found: undefined, verdict: undefined, from: 'not measured' };
  return { ...wanted, found: show(value), verdict: verdictOf(value, limits), from };
}
