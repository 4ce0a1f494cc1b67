// The operation that shows the operator log: who looked at what, and who changed what.

import { z } from 'zod';
import { operatorLog as log } from '../audit/operator-log.ts';
import type { DatabaseConnection } from '../../ledger/index.ts';
import { plain, source, time } from '../contract/filters.ts';
import { apiList, listOperation } from './lists.ts';
import { forbidden, type Operation } from './operation.ts';
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

export const logFilters = {
  actor: plain(100).optional(),
  token_id: plain(100).optional(),
  action: z.enum(ACTIONS).optional(),
  subject: plain(256).optional(),
  source: source.optional(),
  from: time.optional().describe('Not before.'),
  to: time.optional().describe('Before, and not at.'),
};

export const operatorLog = apiList({
  name: 'operator-log',
  filters: logFilters,
  item: LogLine,
  page: page(LogLine).meta({ id: 'LogPage', description: 'A page of the operator log.' }),
  list: log,
  toFilters: (asked, caller) => {
    if (caller.sources !== null) throw forbidden();
    return asked;
  },
  tag: 'Operator log',
  summary: 'What operators looked at and changed, newest first',
  description: 'For tokens that are not limited to some sources.',
});

export function createLogOperations({
  connection,
}: {
  connection: Pick<DatabaseConnection, 'db'>;
}): readonly Operation[] {
  return [listOperation(operatorLog, connection, { role: 'auditor', answer: 'A page of the log.' })];
}
