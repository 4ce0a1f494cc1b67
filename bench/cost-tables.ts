// Tables of what an event costs, of both sides of a comparison, and of the pools that were tried. Pure. A dash means not measured.

import { confirmed, cpuUs, type Figure } from './figures.ts';
import { markdown, NONE, rate, subjectsOf, variantsOf, withSpread } from './tables.ts';
import { type Run, type RunCase, spreadOf, type SubjectName } from './results.ts';

const ROLES = ['postgres', 'rabbitmq', 'generator', 'subscriber', 'proxy'] as const;

/** CPU microseconds of each process with its children, and bytes that Postgres writes, for an event. */
export function costTable(runs: readonly Run[], name: RunCase): string {
  const rows = variantsOf(runs, name).flatMap((variant) =>
    subjectsOf(runs, name).flatMap((subject) => {
      const found = (figure: Figure) => spreadOf(runs, { case: name, variant, subject }, figure)?.median;
      const own = subject.startsWith('tallyhook') ? 'tallyhook' : subject;
      const cpu = [own, ...ROLES].map((role) => found(cpuUs(role)));
      if (cpu.every((each) => each === undefined)) return [];
      const written = [found((each) => each.walBytesPerEvent), found((each) => each.diskBytesPerEvent)];
      return [[variant, subject, ...[...cpu, ...written].map(whole)]];
    }),
  );
  const heads = ['itself', ...ROLES].map((role) => `${role} µs`);
  return markdown(['for an event', '', ...heads, 'WAL bytes', 'tables bytes'], rows);
}

/** Both sides of each comparison: events confirmed on the bus, and their ratio. */
export function comparisonTable(runs: readonly Run[], name: RunCase): string {
  const rows = variantsOf(runs, name).flatMap((variant) => {
    const found = (subject: SubjectName, figure: Figure) =>
      spreadOf(runs, { case: name, variant, subject }, figure);
    const [ours, theirs] = [found('tallyhook', confirmed), found('baseline', confirmed)];
    if (ours === undefined || theirs === undefined) return [];
    const ratio = theirs.median === 0 ? NONE : `${(ours.median / theirs.median).toFixed(2)} ×`;
    const pool = whole(found('baseline', (figures) => figures.pool)?.median);
    return [[variant, withSpread(ours), withSpread(theirs), ratio, pool]];
  });
  return markdown(['confirmed/s', 'tallyhook', 'baseline', 'ratio', 'pool of the baseline'], rows);
}

/** The baseline's rate with each pool that was tried under a load. */
export function tuningTable(runs: readonly Run[]): string {
  const tried = runs.filter((run) => run.case === 'tuning');
  const pools = [...new Set(tried.flatMap(({ figures }) => figures.pool ?? []))].toSorted((a, b) => a - b);
  const loads = [...new Set(tried.map(({ variant }) => variant))];
  const rows = loads.map((variant) => [
    variant,
    ...pools.map((pool) => {
      const same = tried.filter(({ figures }) => figures.pool === pool);
      return whole(spreadOf(same, { case: 'tuning', variant }, confirmed)?.median);
    }),
  ]);
  return markdown(['confirmed/s', ...pools.map((pool) => `pool of ${pool}`)], rows);
}

const whole = (value: number | undefined) => (value === undefined ? NONE : rate(value));
