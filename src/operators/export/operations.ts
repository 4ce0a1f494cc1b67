// Exports whole lists, streamed as NDJSON or CSV. Memory is bounded however slow the reader is. An export that fails midway
// cuts the connection, so that nobody takes a part for the whole.

import { Readable } from 'node:stream';
import { stringify } from 'csv-stringify/sync';
import { z } from 'zod';
import type { Logger } from '../../base/log/log.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { flag, plain, REASON_MAX_LENGTH } from '../kernel/list/filters.contract.ts';
import type { ApiList } from '../kernel/list/list.operations.ts';
import { faultsOf, InputError, inPlainWords } from '../kernel/operation/input-faults.ts';
import { ApiError, type Caller, defineRead, type Operation } from '../kernel/operation/operation.ts';
import { type IsTokenValid, mayGoOn, TOKEN_CHECK_MS } from '../kernel/operation/token-check.ts';
import { EXPORTED_LISTS, type ExportedList, LISTS_WITH_BODIES } from '../lists.contract.ts';
import { LISTS } from '../lists.operations.ts';
import { type Exported, readBodies, withBodies } from './bodies.queries.ts';
import { readAll } from './queries.ts';

/** On each replica. Each takes one of the operators' 256 connections, and memory for a page and a buffer, some MiB. */
const EXPORTS_AT_ONCE = 4;
/** One token that does not read its exports must not keep others from exporting. */
const EXPORTS_PER_TOKEN = 2;
/** Pages of all exports that are read at one time: each takes one of the operators' four database connections. */
const PAGES_AT_ONCE = 2;
/** A reader that takes nothing for so long is gone, and others wait for the place. */
const STALLED_MS = 60_000;
/** Several slices, so that the next one is ready when the socket has room. */
const BUFFER_BYTES = 256 * 1024;

type Deps = {
  readonly connection: Pick<DatabaseConnection, 'db'>;
  readonly isTokenValid: IsTokenValid;
  readonly log: Logger;
  readonly stalledMs?: number;
  readonly tokenCheckMs?: number;
};

const EXPORTED: Readonly<Record<ExportedList, ApiList>> = LISTS;

/** Every filter of every list, as text. The schema of the list then checks which of them it has, and their form. */
const anyFilter = Object.fromEntries(
  [...new Set(EXPORTED_LISTS.flatMap((name) => Object.keys(EXPORTED[name].filters)))].map((filter) => [
    filter,
    plain(REASON_MAX_LENGTH)
      .optional()
      .describe(`Of ${listsWith(filter)}, in the form that it has there.`),
  ]),
);

function listsWith(filter: string): string {
  const lists = EXPORTED_LISTS.filter((name) => filter in EXPORTED[name].filters);
  return new Intl.ListFormat('en').format(lists.map((name) => `\`${name}\``));
}

const FORMATS = {
  ndjson: 'application/x-ndjson',
  csv: 'text/csv; charset=utf-8; header=present',
} as const;

export function createExportOperations(deps: Deps): readonly Operation[] {
  const { connection, isTokenValid, log, stalledMs = STALLED_MS, tokenCheckMs = TOKEN_CHECK_MS } = deps;
  const places = new Set<{ readonly tokenId: string }>();
  const inTurn = createTurns(PAGES_AT_ONCE);

  /** @returns a function that frees the place. @throws ApiError 429 or 503 if none is free */
  function takePlace(tokenId: string): () => void {
    const own = [...places].filter((place) => place.tokenId === tokenId).length;
    if (own >= EXPORTS_PER_TOKEN) {
      throw busy(429, `this token exports ${own} lists already: try again when one of them has ended`);
    }
    if (places.size >= EXPORTS_AT_ONCE) {
      throw busy(503, `${EXPORTS_AT_ONCE} exports are running already: try again`);
    }
    const place = { tokenId };
    places.add(place);
    return () => void places.delete(place);
  }

  /** By a timer, since a stream that is read slowly gives no occasion to check. */
  function cutWhenTokenEnds(stream: Readable, caller: Caller): void {
    const check = async () => {
      if (await mayGoOn(caller, { isTokenValid, what: 'whether an export may go on', log })) return;
      stream.destroy(new Error('the token of this export holds no longer'));
    };
    const checks = setInterval(() => void check(), tokenCheckMs).unref();
    stream.once('close', () => clearInterval(checks));
  }

  return [
    defineRead({
      id: 'export',
      path: '/export',
      tag: 'Export',
      summary: 'A whole list, as NDJSON or CSV',
      description:
        'With the filters of that list. An export that ends without its last chunk is not complete: repeat it. If its ' +
        'token is revoked or expires, it is cut within a minute. ' +
        'In CSV, a cell that a spreadsheet would take for a formula has an apostrophe before it. ' +
        'With `bodies` each delivery has its body: as text in `body`, or in `body_base64` where it is not UTF-8. ' +
        `At most ${EXPORTS_AT_ONCE} run on a replica, and ${EXPORTS_PER_TOKEN} with one token.`,
      role: 'auditor',
      query: z.strictObject({
        list: z.enum(EXPORTED_LISTS),
        format: z.enum(['ndjson', 'csv']).default('ndjson'),
        bodies: flag
          .optional()
          .describe('`true`: with the bodies that are kept, of `deliveries` and `quarantine` alone.'),
        ...anyFilter,
      }),
      answers: { 200: { description: 'The list.', contentType: Object.values(FORMATS) } },
      run: async (
        { query: { list: name, format, bodies: hasBodies = false, ...given } },
        { caller, record, signal },
      ) => {
        const list: ApiList = EXPORTED[name];
        const read = list.readerFor(readFilters(list, given), caller);
        if (hasBodies) requireBodies(name);
        const leave = takePlace(caller.tokenId);
        try {
          const { source = null } = given as { source?: string };
          await record({
            action: 'export',
            source,
            subject: name,
            detail: { format, ...(hasBodies && { bodies: true }), ...given },
          });
          signal.throwIfAborted();
        } catch (error) {
          leave();
          throw error;
        }
        const slices = readAll((options) => inTurn(() => read(connection.db, options)));
        const lines = linesOf(list.item, slices, {
          format,
          bodies: hasBodies ? (portion) => inTurn(() => readBodies(connection.db, portion)) : undefined,
        });
        const stream = Readable.from(
          watched(lines, stalledMs, () => stream),
          {
            objectMode: false,
            highWaterMark: BUFFER_BYTES,
          },
        );
        stream.once('close', leave);
        cutWhenTokenEnds(stream, caller);
        return {
          status: 200,
          contentType: FORMATS[format],
          headers: { 'Content-Disposition': `attachment; filename="${name}.${format}"` },
          stream,
        };
      },
    }),
  ];
}

const busy = (status: 429 | 503, message: string) => new ApiError(status, 'export_busy', message);

/** Runs so much work at one time, the rest in the order in which it came. */
function createTurns(atOnce: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let underWay = 0;
  return async (work) => {
    if (underWay < atOnce) underWay += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) underWay -= 1;
      else next();
    }
  };
}

/** @throws ApiError 400 as the list itself would */
function readFilters({ name, filters }: ApiList, given: object): object {
  const { data, error } = z.strictObject(filters).safeParse(given, { error: inPlainWords });
  if (error === undefined) return data;
  throw new InputError(faultsOf(error, `unknown parameter of the list ${name}`));
}

type Slices = AsyncIterable<readonly object[]>;
type ReadBodies = (portion: readonly Exported[]) => Promise<ReadonlyMap<string, Buffer>>;

/** @throws ApiError 400 */
function requireBodies(name: ExportedList): void {
  if (LISTS_WITH_BODIES.some((one) => one === name)) return;
  throw new ApiError(400, 'invalid_request', `bodies: only ${LISTS_WITH_BODIES.join(' and ')} have some`);
}

function linesOf(
  item: z.ZodObject,
  slices: Slices,
  { format, bodies }: { format: keyof typeof FORMATS; bodies: ReadBodies | undefined },
): AsyncGenerator<string> {
  const write = format === 'csv' ? csvLines : jsonLines;
  if (bodies === undefined) return write(item, slices);
  return write(item.extend(BODY), portions(slices as AsyncIterable<readonly Exported[]>, bodies));
}

const BODY = { body: z.string().nullable(), body_base64: z.string().nullable() };

async function* portions(slices: AsyncIterable<readonly Exported[]>, bodies: ReadBodies) {
  for await (const slice of slices) yield* withBodies(slice, bodies);
}

async function* jsonLines(item: z.ZodObject, slices: Slices): AsyncGenerator<string> {
  for await (const slice of slices) {
    yield slice.map((each) => `${JSON.stringify(item.parse(each))}\n`).join('');
  }
}

/** RFC 4180, with a header. Arrays and objects are written as JSON. */
async function* csvLines(item: z.ZodObject, slices: Slices): AsyncGenerator<string> {
  const columns = Object.keys(item.shape);
  yield stringify([columns], { record_delimiter: 'windows' });
  for await (const slice of slices) {
    yield stringify(
      slice.map((each) => item.parse(each)),
      {
        columns,
        record_delimiter: 'windows',
        // Senders choose job ids, and a spreadsheet would run one that begins as a formula.
        escape_formulas: true,
        // By itself, csv-stringify quotes only what holds the whole record delimiter.
        quoted_match: /[\r\n]/,
        cast: { boolean: String, object: (value) => JSON.stringify(value) },
      },
    );
  }
}

/** Destroys the stream when the reader has taken nothing for `stalledMs`. */
async function* watched(
  lines: AsyncIterable<string>,
  stalledMs: number,
  stream: () => Readable,
): AsyncGenerator<string> {
  let timer: NodeJS.Timeout | undefined;
  try {
    for await (const text of lines) {
      timer = setTimeout(
        () => stream().destroy(new Error('the reader took nothing for too long')),
        stalledMs,
      );
      yield text;
      clearTimeout(timer);
    }
  } finally {
    clearTimeout(timer);
  }
}
