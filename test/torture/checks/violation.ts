// A broken promise, as a check reports it.

const KINDS = [
  'lost',
  'unexpected',
  'altered',
  'too many copies',
  'out of order',
  'revived',
  'ids',
  'audit',
  'late answer',
  'wrong answer',
  'exit',
  'leak',
  'not drained',
] as const;

export type Violation = { readonly kind: (typeof KINDS)[number]; readonly what: string };

export const violation = (kind: Violation['kind'], what: string): Violation => ({ kind, what });
