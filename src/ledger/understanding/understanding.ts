// What both ways to understand a body have in common: what they return, and rules that hold for either.

import { eventSchemas, type Kind, kindOf } from '../../event/index.ts';
import { typeOfJson } from '../../base/json/json-type.ts';
import type { Drift } from './drift.ts';
import type { JobEvent } from './event.ts';

/** `drift`: the fields or the status that our schemas do not know, if any. */
export type Understanding =
  | { readonly outcome: 'event'; readonly event: JobEvent; readonly drift?: readonly Drift[] }
  | {
      readonly outcome: 'quarantined';
      readonly jobId: string;
      readonly status: string;
      readonly reason: string;
      readonly drift?: readonly Drift[];
    }
  | { readonly outcome: 'malformed'; readonly reason: string; readonly drift?: never };

/** Unknown fields of one body that are counted: a body with nothing else must not cost more than another. */
const DRIFT_PER_BODY = 20;

/**
 * An error code is searched for as a whole, so it is kept whole or not at all. Real ones are short words. Nobody could type
 * control characters to search for them, and Postgres takes no NUL.
 */
const ERROR_CODE = /^\P{C}{1,256}$/u;

/** Of the field `error_code`. */
export function errorCodeOf(value: unknown): string | null {
  return typeof value === 'string' && ERROR_CODE.test(value) ? value : null;
}

const knownFields: Readonly<Record<Kind, ReadonlySet<string>>> = {
  completed: new Set(Object.keys(eventSchemas.completed.shape)),
  failed: new Set(Object.keys(eventSchemas.failed.shape)),
  progress: new Set(Object.keys(eventSchemas.progress.shape)),
};

/** The event, and those of its fields that our schemas do not know: of nearly all bodies none. */
export function eventWithDrift(
  event: JobEvent,
  names: Iterable<string>,
  valueOf: (name: string) => unknown,
): Understanding {
  const known = knownFields[kindOf(event.status)];
  let drift: Drift[] | undefined;
  for (const name of names) {
    if (known.has(name)) continue;
    drift ??= [];
    if (drift.length === DRIFT_PER_BODY) break;
    const valueType = typeOfJson(valueOf(name));
    drift.push({ kind: 'field', status: event.status, name: ownText(name), valueType });
  }
  return drift === undefined ? { outcome: 'event', event } : { outcome: 'event', event, drift };
}

/** A copy: a slice would keep the whole body in memory for as long as the name is counted. */
const ownText = (name: string): string => Buffer.from(name, 'utf16le').toString('utf16le');
