// The filters of lists as options. The API checks the values. Times alone are converted here, so that they may be written as a
// person would.

import { z } from 'zod';
import { UsageError } from '../../../base/errors.ts';
import { parseMoment, parseSpan } from '../../../base/time/moments.ts';
import { optionHelp } from '../../../terminal/options.ts';
import type { Filter, Filters } from '../../client/index.ts';

/** As a sentence lists them: `confirmed, returned, nacked or failed`. */
export const orOf = (words: readonly string[]): string => words.join(', ').replace(/, (?!.*, )/, ' or ');

/** A list's filters that are options. */
const optionsIn = (filters: Filters): readonly [name: string, option: string, filter: Filter][] =>
  Object.entries(filters).flatMap(([name, filter]) =>
    filter.form.option === undefined ? [] : [[name, filter.form.option, filter]],
  );

type ValueOf<F extends Filter> = F['form'] extends { readonly takes: string }
  ? F['form'] extends { readonly converts: 'seconds' }
    ? number
    : string
  : true;
type FilterQuery<Asked extends Filters> = { readonly [Name in keyof Asked]?: ValueOf<Asked[Name]> };

/** As `parse` takes them. */
export const filterOptions = (filters: Filters): Record<string, { readonly type: 'string' | 'boolean' }> =>
  Object.fromEntries(
    optionsIn(filters).map(([, option, { form }]) => [
      option,
      { type: form.takes === undefined ? 'boolean' : 'string' },
    ]),
  );

/** @throws UsageError for a time that is none. */
export function readFilters<Asked extends Filters>(
  filters: Asked,
  values: Readonly<Record<string, unknown>>,
): FilterQuery<Asked> {
  const given = optionsIn(filters).flatMap(([name, option, { form }]) => {
    const value = values[option];
    if (value === undefined) return [];
    return [[name, typeof value === 'string' ? convert(option, value, form.converts) : true] as const];
  });
  return Object.fromEntries(given) as FilterQuery<Asked>;
}

/** Lines for a command's help. `helps`: what is said otherwise there, by the filters' names. */
export const filterHelp = (filters: Filters, helps: Readonly<Record<string, string>> = {}): string =>
  optionHelp(
    Object.fromEntries(
      optionsIn(filters).map(([name, option, filter]) => {
        const {
          takes,
          unset,
          help = wordsOf(filter) + (unset === undefined ? '' : ` (${unset})`),
        } = filter.form;
        return [option, { ...(takes !== undefined && { takes }), help: helps[name] ?? help }];
      }),
    ),
  );

/** The words that it takes, as a sentence lists them. */
export function wordsOf(filter: Filter): string {
  const schema = filter.unwrap();
  return schema instanceof z.ZodEnum ? orOf(schema.options.map(String)) : '';
}

function convert(name: string, text: string, as: Filter['form']['converts']): string | number {
  if (as === 'time') return timeOf(`--${name}`, text);
  if (as === 'seconds') return stuckAfterOf(`--${name}`, text);
  return text;
}

/** Bounds of the API. @throws UsageError */
function stuckAfterOf(name: string, text: string): number {
  const seconds = secondsOf(name, text);
  if (seconds >= 60 && seconds <= 365 * 86_400) return seconds;
  throw new UsageError(`${name} takes a time from 60s to 365d`);
}

/** `90s`, `15m`, `24h`, `7d`, or seconds. @throws UsageError */
export function secondsOf(name: string, text: string): number {
  const seconds = parseSpan(text);
  if (seconds === undefined) throw new UsageError(`${name} takes a time such as 90s, 15m, 24h or 7d`);
  return seconds;
}

/** A moment as the API takes it; so long ago, a day, or RFC 3339. @throws UsageError */
export function timeOf(name: string, text: string, nowMs = Date.now()): string {
  const moment = parseMoment(text, nowMs);
  if (moment !== undefined) return moment;
  throw new UsageError(`${name} takes 2026-01-31T12:00:00Z, 2026-01-31, or how long ago: 15m, 24h, 7d`);
}
