// Compares Tallyhook with the baseline under one load. They take turns, and the baseline has the pool that is best for this load.

import { confirmed } from './figures.ts';
import { type Run, spreadOf } from './results.ts';
import { type Bench, runBaseline, runTallyhook, type Variation } from './runs.ts';

/** A variation that both are measured with. */
export type Comparison = Omit<Variation, 'round' | 'pool'>;

const USUAL_LOAD = 'bus: 64 connections';
/** Where no pool was chosen. */
const USUAL_POOL = 20;

/**
 * In each round the other one begins. A comparison of one round shows a tendency: there the baseline has the pool of the usual
 * load, if that is known.
 */
export async function compare(bench: Bench, comparison: Comparison, rounds: number): Promise<void> {
  const usual = rounds > 1 ? undefined : bestPool(bench.runs, USUAL_LOAD);
  const pool = usual ?? (await choosePool(bench, comparison));
  await takeTurns(rounds, [
    (round) => runTallyhook(bench, { ...comparison, round }),
    (round) => runBaseline(bench, { ...comparison, round, pool }),
  ]);
}

/**
 * Runs each of them once in each round. Every second round begins with the last of them, so that a machine that becomes slower or
 * faster does not favour one.
 */
export async function takeTurns(
  rounds: number,
  subjects: readonly ((round: number) => Promise<void>)[],
): Promise<void> {
  for (let round = 1; round <= rounds; round++)
    for (const run of round % 2 === 1 ? subjects : subjects.toReversed()) await run(round);
}

/** The same load with each size of the pool, shortly. @returns the best size */
export async function choosePool(bench: Bench, comparison: Comparison): Promise<number> {
  const { pools, shortWarmUpS: warmUpS, tuningS: durationS } = bench.scale;
  const variant = loadName(comparison);
  const sizes = usefulPools(pools, connectionsOf(comparison));
  if (sizes.length > 1 && bestPool(bench.runs, variant) === undefined)
    for (const pool of sizes)
      await runBaseline(bench, {
        ...comparison,
        case: 'tuning',
        variant,
        round: 1,
        pool,
        load: { ...comparison.load, warmUpS, durationS },
      });
  return bestPool(bench.runs, variant) ?? sizes[0] ?? USUAL_POOL;
}

export const loadName = ({ case: name, variant }: Pick<Comparison, 'case' | 'variant'>) =>
  `${name}: ${variant}`;

function connectionsOf({ load }: Comparison): number {
  if (load?.loop === undefined) return Infinity;
  return load.loop.kind === 'closed' ? load.loop.concurrency : load.loop.connections;
}

/** Pure. A pool is never used beyond the requests that are there at once, so one size above those is the last to try. */
export function usefulPools(pools: readonly number[], connections: number): number[] {
  const sizes = pools.toSorted((a, b) => a - b);
  const enough = sizes.findIndex((size) => size >= connections);
  return enough === -1 ? sizes : sizes.slice(0, enough + 1);
}

/** Pure. The size with which the baseline was fastest under this load; undefined if none was tried. */
export function bestPool(runs: readonly Run[], load: string): number | undefined {
  const tried = runs.filter((run) => run.case === 'tuning' && run.variant === load);
  const rate = (size: number) =>
    spreadOf(
      tried.filter(({ figures }) => figures.pool === size),
      { case: 'tuning' },
      confirmed,
    )?.median ?? 0;
  const sizes = [...new Set(tried.flatMap(({ figures }) => figures.pool ?? []))];
  return sizes.toSorted((a, b) => rate(b) - rate(a))[0];
}
