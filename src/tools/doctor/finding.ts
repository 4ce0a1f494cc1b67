// What a check of `tallyhook doctor` found.

export type Finding = {
  readonly check: CheckName;
  /** `skipped`: not checked, since something before it failed. */
  readonly result: 'ok' | 'warning' | 'failed' | 'skipped';
  /** What was seen, or why it was not checked. */
  readonly found: string;
  /** What to do about it. */
  readonly mend?: string;
  /** The same in values, for programs. */
  readonly details?: Readonly<Record<string, string | number | readonly string[]>>;
};

/** In the order in which they are made. */
export const CHECKS = [
  'address',
  'tls',
  'signature',
  'forged',
  'unsigned',
  'bytes',
  'method',
  'encoding',
  'size',
  'time',
  'event',
  'redelivery',
] as const;
export type CheckName = (typeof CHECKS)[number];

type Details = Finding['details'];
type Fault = { readonly found: string; readonly mend: string };

export const ok = (check: CheckName, found: string, details?: Details): Finding => ({
  check,
  result: 'ok',
  found,
  ...(details !== undefined && { details }),
});

export const warning = (check: CheckName, fault: Fault, details?: Details): Finding => ({
  check,
  result: 'warning',
  ...fault,
  ...(details !== undefined && { details }),
});

export const failed = (check: CheckName, fault: Fault): Finding => ({ check, result: 'failed', ...fault });

export const skipped = (check: CheckName, found: string): Finding => ({ check, result: 'skipped', found });
