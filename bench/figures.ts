// The figures that several tables, targets and plots take from a run. Pure.

import type { Figures } from './results.ts';

export type Figure = (figures: Figures) => number | undefined;

export const acks: Figure = ({ acksPerS }) => acksPerS;
export const confirmed: Figure = ({ confirmedPerS }) => confirmedPerS;

/** CPU time of one process with its children for an event, in microseconds. */
export const cpuUs =
  (role: string): Figure =>
  ({ cpuMsPer1000 }) =>
    cpuMsPer1000?.[role];

/** The number in a variant's name, by which variants are sorted: 10,000,000 of `10,000,000 events`. */
export const sizeOf = (variant: string) => Number(variant.replaceAll(/[^\d.]/g, ''));
