// GET /stats: counts and times of deliveries and publications, by step of time and source.

import { z } from 'zod';
import { readStats, type StatsRange, type StatsStep } from '../statistics/statistics.ts';
import { type DatabaseConnection, MINUTES_KEPT_HOURS } from '../../ledger/index.ts';
import { time, wholeNumber, source } from '../contract/filters.ts';
import { ApiError, defineRead, type Operation, scopeOf } from './operation.ts';
import { Stats, type StatsItem } from '../contract/stats.ts';

const STEP_MIN_S = 60;
const STEP_MAX_S = 366 * 24 * 60 * 60;
const STEPS_MAX = 1_500;
const HOUR_MS = 60 * 60 * 1_000;
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
      summary: 'Deliveries, answer times, publications and lag by step and source',
      description:
        'Counted in memory and written every ten seconds by each replica, so the last seconds may be missing, and a ' +
        'crash loses them. `/deliveries` is the exact record. `from` and `to` are widened to whole steps; without ' +
        'them it is the last hour. `answer_ms` is the time from the head of a delivery to its answer, `lag_ms` that ' +
        'from the acceptance of an event to its confirm by the broker.',
      role: 'viewer',
      query: z.strictObject({
        from: time.optional().describe('Not before. An hour before `to` where not given.'),
        to: time.optional().describe('Before. Now where not given.'),
        step: wholeNumber(STEP_MIN_S, STEP_MAX_S)
          .refine((step) => step % 60 === 0, 'must be whole minutes, in seconds')
          .default(STEP_MIN_S)
          .describe(
            `Seconds, whole minutes. At most ${STEPS_MAX} steps fit between \`from\` and \`to\`. Counts older than ` +
              `${MINUTES_KEPT_HOURS} hours are kept by the hour: a range that begins before has steps of whole hours.`,
          ),
        source: source.optional(),
      }),
      answers: {
        200: {
          description: 'The steps, oldest first.',
          schema: Stats,
        },
      },
      run: async ({ query }, { caller }) => {
        const range = rangeOf(query, now());
        const steps = await readStats(connection, range, scopeOf(caller, query.source));
        if (steps === undefined) {
          throw invalid(
            'these are too many steps and sources: name a source, or ask for larger steps or less time',
          );
        }
        return {
          status: 200,
          body: {
            from: range.from.toISOString(),
            to: range.to.toISOString(),
            step: range.stepS,
            items: steps.map(toItem),
          },
        };
      },
    }),
  ];
}

const invalid = (message: string) => new ApiError(400, 'invalid_request', message);

/** @throws ApiError 400 */
function rangeOf(
  query: { from?: string | undefined; to?: string | undefined; step: number },
  nowMs: number,
): StatsRange {
  const toMs = query.to === undefined ? nowMs : Date.parse(query.to);
  const fromMs = query.from === undefined ? toMs - DEFAULT_RANGE_MS : Date.parse(query.from);
  const askedMs = query.step * 1_000;
  const isByMinute = Math.floor(fromMs / askedMs) * askedMs >= nowMs - MINUTES_KEPT_HOURS * HOUR_MS;
  const stepMs = isByMinute ? askedMs : Math.ceil(askedMs / HOUR_MS) * HOUR_MS;
  if (!(fromMs < toMs)) throw invalid('from: must be before to');
  if (toMs - fromMs > RANGE_MAX_MS) throw invalid('from: must be at most 366 days before to');
  const from = Math.floor(fromMs / stepMs) * stepMs;
  const to = Math.ceil(toMs / stepMs) * stepMs;
  if (to > LAST_MS) throw invalid('to: leaves the year 9999 where it is widened to whole steps');
  if ((to - from) / stepMs > STEPS_MAX) {
    throw invalid(`step: makes more than ${STEPS_MAX} steps between from and to`);
  }
  return { from: new Date(from), to: new Date(to), stepS: stepMs / 1_000 };
}

function toItem(step: StatsStep): StatsItem {
  return {
    at: step.at.toISOString(),
    source: step.source,
    deliveries: step.deliveries,
    answer_ms: step.answerMs,
    publications: step.publications,
    lag_ms: step.lagMs,
  };
}
