// GET /stats: counts and times of deliveries and publications, by step of time and source, and in all.

import { z } from 'zod';
import { type DatabaseConnection, MINUTES_KEPT_HOURS } from '../../ledger/index.ts';
import { documented } from '../kernel/list/fields.contract.ts';
import { flag, source, time, wholeNumber } from '../kernel/list/filters.contract.ts';
import { ApiError, defineRead, type Operation, scopeOf } from '../kernel/operation/operation.ts';
import { Stats, type StatsItem, type WaitsItem } from './contract.ts';
import { type Figures, readStatistics, type StatsRange, type TimeRange } from './queries.ts';

const STEP_MIN_S = 60;
const STEP_MAX_S = 366 * 24 * 60 * 60;
const STEPS_MAX = 1_500;
const MINUTE_MS = 60 * 1_000;
const HOUR_MS = 60 * MINUTE_MS;
const RANGE_MAX_MS = 366 * 24 * HOUR_MS;
const DEFAULT_RANGE_MS = HOUR_MS;
/** RFC 3339 has years of four digits. */
const LAST_MS = Date.UTC(9_999, 11, 31, 23, 59, 59, 999);

export function createStatsOperations(deps: {
  connection: DatabaseConnection;
  /** Milliseconds since the epoch. */
  now: () => number;
}): readonly Operation[] {
  const { connection, now } = deps;
  return [
    defineRead({
      id: 'getStats',
      path: '/stats',
      tag: 'Statistics',
      summary: 'Deliveries, answer times, publications and lag by step and source, and in all',
      description:
        'Counted in memory and written every ten seconds by each replica, so the last seconds may be missing, and a ' +
        'crash loses them. `/deliveries` is the exact record. `from` and `to` are widened to whole steps; without ' +
        'them it is the last hour. `total` is of the time that was asked for, ' +
        'widened to whole minutes. `answer_ms` is the time from the head of a delivery to its answer, `lag_ms` that ' +
        'from the acceptance of an event to its confirm by the broker. An event that still waits is not in it: `waits` has ' +
        'the most that waited in each step, and for how long.',
      role: 'viewer',
      query: z.strictObject({
        from: time.optional().describe('Not before. An hour before `to` where not given.'),
        to: time.optional().describe('Before. Now where not given.'),
        step: wholeNumber(STEP_MIN_S, STEP_MAX_S)
          .refine((step) => step % 60 === 0, 'must be whole minutes, in seconds: 60, 120, 3600')
          .default(STEP_MIN_S)
          .meta(documented({ multipleOf: 60 }))
          .describe(
            `Seconds, whole minutes. At most ${STEPS_MAX} steps fit between \`from\` and \`to\`. Counts older than ` +
              `${MINUTES_KEPT_HOURS} hours are kept by the hour: a range that begins before has steps of whole hours.`,
          ),
        source,
        together: flag
          .default(false)
          .describe(
            '`true`: a step has one item of all sources, with their percentiles, which those of single sources do not give.',
          ),
      }),
      answers: {
        200: {
          description: 'The steps, oldest first, and their total.',
          schema: Stats,
        },
      },
      run: async ({ query }, { caller }) => {
        const ranges = rangesOf(query, now());
        const asked = { ...ranges, together: query.together };
        const { steps, total, waits } = await readStatistics(
          connection,
          asked,
          scopeOf(caller, query.source),
        );
        if (steps === undefined) {
          throw invalid(
            'these are too many steps and sources: name a source, or ask for larger steps or less time',
          );
        }
        return {
          status: 200,
          body: {
            ...toTexts(ranges.steps),
            step: ranges.steps.stepS,
            items: steps.map(
              (step): StatsItem => ({ at: step.at.toISOString(), source: step.source, ...toShown(step) }),
            ),
            total: { ...toTexts(ranges.total), ...toShown(total) },
            waits: waits.map((step): WaitsItem => ({ ...step, at: step.at.toISOString() })),
          },
        };
      },
    }),
  ];
}

const invalid = (message: string) => new ApiError(400, 'invalid_request', message);

/** Of the steps: widened to whole steps. Of the total: to what counts are kept by. @throws ApiError 400 */
function rangesOf(
  query: { from?: string | undefined; to?: string | undefined; step: number },
  nowMs: number,
): { steps: StatsRange; total: TimeRange } {
  const toMs = query.to === undefined ? nowMs : Date.parse(query.to);
  const fromMs = query.from === undefined ? toMs - DEFAULT_RANGE_MS : Date.parse(query.from);
  const askedMs = query.step * 1_000;
  const minutesFromMs = nowMs - MINUTES_KEPT_HOURS * HOUR_MS;
  const isByMinute = (unitMs: number) => Math.floor(fromMs / unitMs) * unitMs >= minutesFromMs;
  const stepMs = isByMinute(askedMs) ? askedMs : Math.ceil(askedMs / HOUR_MS) * HOUR_MS;
  if (!(fromMs < toMs)) throw invalid('from: must be before to');
  if (toMs - fromMs > RANGE_MAX_MS) throw invalid('from: must be at most 366 days before to');
  const steps = widened(fromMs, toMs, stepMs);
  if (steps.to.getTime() > LAST_MS) {
    throw invalid('to: leaves the year 9999 where it is widened to whole steps');
  }
  if ((steps.to.getTime() - steps.from.getTime()) / stepMs > STEPS_MAX) {
    throw invalid(`step: makes more than ${STEPS_MAX} steps between from and to`);
  }
  return {
    steps: { ...steps, stepS: stepMs / 1_000 },
    total: widened(fromMs, toMs, isByMinute(MINUTE_MS) ? MINUTE_MS : HOUR_MS),
  };
}

const widened = (fromMs: number, toMs: number, unitMs: number): TimeRange => ({
  from: new Date(Math.floor(fromMs / unitMs) * unitMs),
  to: new Date(Math.ceil(toMs / unitMs) * unitMs),
});

const toTexts = ({ from, to }: TimeRange) => ({ from: from.toISOString(), to: to.toISOString() });

const toShown = ({ deliveries, answerMs, publications, lagMs }: Figures) => ({
  deliveries,
  answer_ms: answerMs,
  publications,
  lag_ms: lagMs,
});
