// The operator log: the fields that the API shows, and the filters of its list.

import { z } from 'zod';
import { columnsOf } from '../kernel/list/columns.contract.ts';
import { digits, timestamp } from '../kernel/list/fields.contract.ts';
import { filter, plain, range, source } from '../kernel/list/filters.contract.ts';

const ACTIONS = [
  'body.read',
  'export',
  'replay.create',
  'replay.pause',
  'replay.resume',
  'replay.cancel',
  'quarantine.release',
  'quarantine.discard',
  'outbox.retry',
  'outbox.discard',
  'outbox.park',
  'token.create',
  'token.revoke',
  'session.create',
  'session.end',
  'alerts.test',
  'database.loss',
] as const;

export const LogLine = z
  .object({
    id: digits,
    at: timestamp,
    actor: z
      .string()
      .describe(
        'The token’s name; `command line` for work on the database itself, `replica …` for what the service found by itself.',
      ),
    token_id: z.string().nullable(),
    role: z.string(),
    action: z.string(),
    source: z.string().nullable(),
    subject: z.string().nullable().describe('The id of the event, delivery, replay, token or session.'),
    detail: z.record(z.string(), z.unknown()).nullable(),
    remote_address: z.string().nullable(),
  })
  .meta({
    id: 'LogLine',
    description: 'Something that an operator read or changed. No line is ever changed.',
  });

export const logFilters = {
  actor: filter(plain(100), {
    label: 'Token name',
    option: 'actor',
    takes: 'NAME',
    help: 'only by the token of this name',
  }),
  token_id: filter(plain(100), {
    label: 'Token id',
    option: 'token',
    takes: 'ID',
    help: 'only by this token',
  }),
  action: filter(z.enum(ACTIONS), {
    label: 'Action',
    option: 'action',
    takes: 'ACTION',
    help: 'body.read, export, replay.create, quarantine.release, outbox.retry, token.create, …',
  }),
  subject: filter(plain(256), {
    label: 'Subject',
    option: 'subject',
    takes: 'ID',
    help: 'only what was done to this delivery, event, replay or token',
  }),
  source,
  ...range,
};

/** What came of an operator's action, and why it was done: `still quarantined, a test of team A`. */
export const actionDetails = ({
  result,
  note,
}: {
  readonly result?: unknown;
  readonly note?: unknown;
}): string =>
  [typeof result === 'string' ? result.replaceAll('_', ' ') : '', typeof note === 'string' ? note : '']
    .filter(Boolean)
    .join(', ');

export const logColumns = columnsOf<z.infer<typeof LogLine>>()({
  at: { head: 'at (UTC)', look: 'time' },
  actor: { head: 'who', look: 'name' },
  role: { head: 'role', look: 'word', isMinor: true },
  action: { head: 'action', look: 'word' },
  subject: { head: 'subject', look: 'id' },
  detail: { head: 'details', look: 'text', of: ({ detail }) => actionDetails(detail ?? {}) },
  source: { head: 'source', look: 'name' },
  remote_address: { head: 'from', look: 'word', isMinor: true },
});
