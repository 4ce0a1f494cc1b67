// The columns of each list, and the colour of each word that has one.

import type { Items } from '../operators/client/index.ts';
import type { Format } from './output.ts';
import { ago, bytes, count, duration, NOTHING, time } from './readable.ts';
import type { Column } from './table.ts';

const COLOURS: Readonly<Record<string, Format>> = {
  accepted: 'green',
  completed: 'green',
  confirmed: 'green',
  finished: 'green',
  done: 'green',
  processing: 'cyan',
  progress: 'cyan',
  pending: 'cyan',
  running: 'cyan',
  conflict: 'yellow',
  quarantined: 'yellow',
  still_quarantined: 'yellow',
  returned: 'yellow',
  paused: 'yellow',
  failed: 'red',
  nacked: 'red',
  malformed: 'red',
  unauthorized: 'red',
  refused: 'red',
  parked: 'red',
  duplicate: 'dim',
  cancelled: 'dim',
  discarded: 'dim',
};

export const colourOf = (word: string): Format | undefined => COLOURS[word];

const percent = (value: number | null) => (value === null ? '' : `${value} %`);
/** `processing 45 %` */
export const statusOf = (item: { status: string | null; progress_percentage: number | null }) =>
  [item.status, item.status === 'processing' ? percent(item.progress_percentage) : '']
    .filter(Boolean)
    .join(' ');

/** Empty for 0: a column without any value is left out. */
const some = (value: number) => (value === 0 ? '' : count(value));

const SHORT = 8;

const delivery: readonly Column<Items['deliveries']>[] = [
  { head: 'received (UTC)', text: (item) => time(item.received_at) },
  { head: 'source', text: (item) => item.source },
  { head: 'outcome', text: (item) => item.outcome, colour: (item) => colourOf(item.outcome) },
  { head: 'job', text: (item) => item.job_id, cutTo: 24 },
  { head: 'status', text: statusOf, cutTo: SHORT },
  { head: 'error', text: (item) => item.error_code, cutTo: SHORT },
  { head: 'reason', text: (item) => item.reason, cutTo: SHORT },
  { head: 'from', text: (item) => item.remote_address },
  { head: 'id', text: (item) => item.id, colour: () => 'dim' },
];

export const COLUMNS: { readonly [N in keyof Items]: readonly Column<Items[N]>[] } = {
  jobs: [
    { head: 'first seen (UTC)', text: (item) => time(item.first_seen_at) },
    { head: 'source', text: (item) => item.source },
    { head: 'job', text: (item) => item.job_id },
    { head: 'state', text: (item) => item.state, colour: (item) => colourOf(item.state) },
    { head: 'progress', text: (item) => percent(item.highest_progress), right: true },
    { head: 'last heard of', text: (item) => ago(item.last_seen_at), right: true },
    {
      head: 'took',
      text: (item) => (item.duration_ms === null ? '' : duration(item.duration_ms)),
      right: true,
    },
  ],
  deliveries: delivery,
  quarantine: [
    ...delivery.filter(({ head }) => head !== 'outcome' && head !== 'from'),
    { head: 'released (UTC)', text: (item) => (item.released_at === null ? '' : time(item.released_at)) },
    { head: 'discarded (UTC)', text: (item) => (item.discarded_at ? time(item.discarded_at) : '') },
    { head: 'by', text: (item) => item.discarded_by, cutTo: SHORT },
    { head: 'note', text: (item) => item.discard_note, cutTo: SHORT },
  ],
  events: [
    { head: 'recorded (UTC)', text: (item) => time(item.recorded_at) },
    { head: 'event', text: (item) => item.id },
    { head: 'kind', text: (item) => item.kind, colour: (item) => colourOf(item.kind) },
    { head: 'late', text: (item) => (item.late ? 'late' : ''), colour: () => 'yellow' },
    { head: 'error', text: (item) => item.error_code, cutTo: SHORT },
    { head: 'repeats', text: (item) => some(item.repeats), right: true },
    { head: 'on the bus', text: (item) => item.publication, colour: (item) => colourOf(item.publication) },
  ],
  publications: [
    { head: 'published (UTC)', text: (item) => time(item.published_at) },
    { head: 'event', text: (item) => item.event_id },
    { head: 'attempt', text: (item) => item.attempt, right: true },
    { head: 'result', text: (item) => item.result, colour: (item) => colourOf(item.result) },
    { head: 'took', text: (item) => duration(item.duration_ms), right: true },
    { head: 'detail', text: (item) => item.detail, cutTo: SHORT },
    { head: 'queue', text: (item) => item.queue, cutTo: SHORT },
    { head: 'replay', text: (item) => item.replay_id, colour: () => 'dim' },
  ],
  outbox: [
    { head: 'recorded (UTC)', text: (item) => time(item.recorded_at) },
    { head: 'state', text: (item) => item.state, colour: (item) => colourOf(item.state) },
    { head: 'event', text: (item) => item.event_id },
    { head: 'attempts', text: (item) => item.attempts, right: true },
    { head: 'last error', text: (item) => item.last_error, cutTo: SHORT },
    { head: 'queue', text: (item) => item.queue, cutTo: SHORT },
    { head: 'replay', text: (item) => item.replay_id, colour: () => 'dim' },
    { head: 'id', text: (item) => item.id, colour: () => 'dim' },
  ],
  replays: [
    { head: 'created (UTC)', text: (item) => time(item.created_at) },
    { head: 'by', text: (item) => item.created_by, cutTo: SHORT },
    { head: 'state', text: (item) => item.state, colour: (item) => colourOf(item.state) },
    { head: 'matched', text: ({ counts }) => count(counts.matched), right: true },
    { head: 'confirmed', text: ({ counts }) => count(counts.confirmed), right: true },
    { head: 'returned', text: ({ counts }) => some(counts.returned), right: true },
    { head: 'failed', text: ({ counts }) => some(counts.failed), right: true },
    { head: 'skipped', text: ({ counts }) => some(counts.skipped), right: true },
    { head: 'queue', text: (item) => item.queue ?? 'the exchange', cutTo: SHORT },
    { head: 'note', text: (item) => item.note, cutTo: SHORT },
    { head: 'id', text: (item) => item.id, colour: () => 'dim' },
  ],
  'operator-log': [
    { head: 'at (UTC)', text: (item) => time(item.at) },
    { head: 'who', text: (item) => item.actor, cutTo: SHORT },
    { head: 'role', text: (item) => item.role },
    { head: 'did', text: (item) => item.action },
    { head: 'to', text: (item) => item.subject, cutTo: 36 },
    { head: 'source', text: (item) => item.source },
    { head: 'from', text: (item) => item.remote_address },
  ],
};

/** Of a delivery's body. */
export const sizeOf = (value: number | null) => (value === null ? NOTHING : bytes(value));
