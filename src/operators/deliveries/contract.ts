// Deliveries: the fields that the API shows, and the filters of its list.

import { z } from 'zod';
import { columnsOf } from '../kernel/list/columns.contract.ts';
import { outcome, percentage, timestamp } from '../kernel/list/fields.contract.ts';
import {
  errorCode,
  filter,
  job,
  kindFilter,
  outcomeFilter,
  plain,
  range,
  source,
  statusFilter,
} from '../kernel/list/filters.contract.ts';

/** Why a sender did not get the answer of a recorded delivery, as people read it. */
const UNANSWERED = {
  left: 'its sender had left before the answer',
  unavailable: 'its sender got 503, since the commit took too long',
} as const;

export const Delivery = z
  .object({
    id: z.uuid(),
    received_at: timestamp,
    source: z.string(),
    outcome,
    http_status: z.int().describe('The status of the answer to the sender.'),
    reason: z
      .string()
      .nullable()
      .describe(
        'Why it is not accepted. If the secret of another source signed it, only tokens that see both sources are told.',
      ),
    job_id: z.string().nullable(),
    status: z.string().nullable().describe('As it was sent. It may be an unknown one.'),
    progress_percentage: percentage,
    error_code: z.string().nullable(),
    event_id: z.string().nullable().describe('The event that it reported, or repeated.'),
    path: z.string(),
    remote_address: z
      .string()
      .nullable()
      .describe('The address of the sender. Behind a trusted proxy: the address that the proxy names.'),
    peer_address: z
      .string()
      .nullable()
      .describe('The trusted proxy that it came through. Null if there was none.'),
    secret_fingerprint: z.string().nullable().describe('Names the signing secret that matched.'),
    body_bytes: z.int().nullable(),
    body_kept: z.boolean(),
    released_at: timestamp.nullable().describe('When an operator released it from quarantine.'),
    discarded_at: timestamp
      .nullable()
      .describe('When an operator discarded a quarantined one: it can no longer be released.'),
    discarded_by: z.string().nullable().describe('The name of the token.'),
    discard_note: z.string().nullable().describe('Why it was discarded.'),
    unanswered: z
      .enum(Object.keys(UNANSWERED) as (keyof typeof UNANSWERED)[])
      .nullable()
      .describe(
        'Why its sender did not get the answer of `http_status`, so that it probably sent it again. `left`: it ended the connection ' +
          'before. `unavailable`: it got 503, since the commit was not confirmed in time. Null where it got the answer, as far as is ' +
          'known. Some seconds late, and lost if the service is killed before.',
      ),
  })
  .meta({ id: 'Delivery', description: 'One inbound request.' });

export const DeliveryDetail = Delivery.extend({
  headers: z.record(z.string(), z.unknown()),
  body_sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable(),
}).meta({ id: 'DeliveryDetail', description: 'One inbound request, with its headers.' });

export const deliveryFilters = {
  source,
  outcome: outcomeFilter,
  status: statusFilter(plain(128).describe('As it was sent.')),
  kind: kindFilter,
  ...job,
  error_code: errorCode,
  secret_fingerprint: filter(plain(64), {
    label: 'Secret',
    option: 'secret',
    takes: 'HEX',
    help: 'signed with the secret of this fingerprint',
  }),
  remote_address: filter(plain(64), {
    label: 'Address',
    option: 'address',
    takes: 'IP',
    help: 'only from this address',
  }),
  ...range,
};

export type Delivery = z.infer<typeof Delivery>;
export type DeliveryDetail = z.infer<typeof DeliveryDetail>;

/** `processing 45 %` */
export const statusOf = (item: { status: string | null; progress_percentage: number | null }): string =>
  [
    item.status,
    item.status === 'processing' && item.progress_percentage !== null ? `${item.progress_percentage} %` : '',
  ]
    .filter(Boolean)
    .join(' ');

/** The status of the answer, and why the sender did not get it, if that is known: `202, but its sender had left before the answer`. */
export const answerOf = ({
  http_status: status,
  unanswered,
}: {
  http_status: number;
  unanswered?: string | null | undefined;
}): string => {
  const why: Readonly<Record<string, string>> = UNANSWERED;
  return unanswered ? `${status}, but ${why[unanswered] ?? unanswered}` : `${status}`;
};

export const deliveryColumns = columnsOf<Delivery>()({
  received_at: { head: 'received (UTC)', look: 'time' },
  source: { head: 'source', look: 'name' },
  outcome: { head: 'outcome', look: 'word' },
  http_status: { head: 'answer', look: 'count', only: 'pages' },
  job_id: { head: 'job', look: 'name' },
  status: { head: 'status', look: 'text', of: statusOf },
  error_code: { head: 'error', look: 'text', isRare: true },
  reason: { head: 'reason', look: 'text', isRare: true },
  body_bytes: { head: 'body', look: 'size', only: 'pages' },
  remote_address: { head: 'from', look: 'word', only: 'terminals' },
  id: { head: 'id', look: 'id', only: 'terminals' },
});

/** The address of one. */
export const deliveryId = z.strictObject({
  id: z.uuid('must be a UUID').transform((id) => id.toLowerCase()),
});
