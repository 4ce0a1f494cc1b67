// The operator log, to be read: who looked at what, and who changed what. Nothing here writes to it.

import { z } from 'zod';
import { type LogFilter, readLog } from '../access/operator-log.ts';
import { encodeCursor } from '../audit/cursor.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { paging, plain, source, time } from '../contract/filters.ts';
import { placeOf } from './lists.ts';
import { defineRead, forbidden, type Operation } from './operation.ts';
import { digits, page, timestamp } from '../contract/items.ts';

export const ACTIONS = [
  'body.read',
  'export',
  'replay.create',
  'replay.pause',
  'replay.resume',
  'replay.cancel',
  'quarantine.release',
  'outbox.retry',
  'outbox.discard',
  'outbox.park',
  'token.create',
  'token.revoke',
] as const;

export const LogLine = z
  .object({
    id: digits,
    at: timestamp,
    actor: z.string().describe('The token’s name; `command line` for work on the database itself.'),
    token_id: z.string().nullable(),
    role: z.string(),
    action: z.string(),
    source: z.string().nullable(),
    subject: z
      .string()
      .nullable()
      .describe('The id of what it was done with: of an event, a delivery, a token.'),
    detail: z.record(z.string(), z.unknown()).nullable(),
    remote_address: z.string().nullable(),
  })
  .meta({
    id: 'LogLine',
    description: 'Something an operator looked at or changed. Lines are never changed.',
  });

const LogPage = page(LogLine).meta({ id: 'LogPage', description: 'A page of the operator log.' });

export const logFilters = {
  actor: plain(100).optional(),
  token_id: plain(100).optional(),
  action: z.enum(ACTIONS).optional(),
  subject: plain(256).optional(),
  source: source.optional(),
  from: time.optional().describe('Not before.'),
  to: time.optional().describe('Before, and not at.'),
};

const LIST = 'operator-log';

export function createLogOperations({
  connection,
}: {
  connection: Pick<DatabaseConnection, 'db'>;
}): readonly Operation[] {
  return [
    defineRead({
      id: 'listOperatorLog',
      path: '/operator-log',
      tag: 'Operator log',
      summary: 'What operators looked at and changed, newest first',
      description: 'For tokens that are not limited to some sources.',
      role: 'auditor',
      query: z.strictObject({ ...logFilters, ...paging }),
      answers: { 200: { description: 'A page of the log.', schema: LogPage } },
      run: async ({ query }, { caller }) => {
        if (caller.sources !== null) throw forbidden();
        const { limit, cursor, ...filters } = query;
        const after = positionOf(cursor, filters);
        const items = await readLog(connection.db, filters, { limit, after });
        const last = items.length === limit ? items.at(-1) : undefined;
        return {
          status: 200,
          body: {
            items,
            next_cursor: last === undefined ? null : encodeCursor([last.at, last.id], LIST, filters),
          },
        };
      },
    }),
  ];
}

function positionOf(cursor: string | undefined, filters: LogFilter) {
  const place = placeOf(cursor, { list: LIST, filters, types: ['time', 'bigint'] });
  return place === null ? undefined : { at: place[0], id: place[1] };
}
