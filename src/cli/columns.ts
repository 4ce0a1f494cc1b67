// The columns of each list, and the colour of each word that has one.

import { type Items, UNANSWERED } from '../operators/client/index.ts';
import type { Format } from './io.ts';
import { ago, briefTime, bytes, count, duration, NOTHING, time } from './readable.ts';
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

/** The status of the answer, and why the sender did not get it, if that is known: `202, but its sender had left before the answer`. */
export const answerOf = ({ http_status: status, unanswered }: Items['deliveries']): string => {
  const why: Readonly<Record<string, string>> = UNANSWERED;
  return unanswered ? `${status}, but ${why[unanswered] ?? unanswered}` : `${status}`;
};

/** Empty for 0: a column without any value is left out. */
const some = (value: number) => (value === 0 ? '' : count(value));

type Text<T> = (item: T) => string | null | undefined;

const inForm = (form: (value: string) => string, value: string | null | undefined) =>
  value ? form(value) : '';

/** Of a time, in UTC. */
export const timeColumn = <T>(head: string, of: Text<T>): Column<T> => ({
  head,
  text: (item) => inForm(time, of(item)),
  brief: (item) => inForm(briefTime, of(item)),
});
/** The word that counts: it is never shortened. */
const wordColumn = <T>(head: string, of: (item: T) => string): Column<T> => ({
  head,
  text: of,
  colour: (item) => colourOf(of(item)),
});
/** Of a job, an event, a source: shortened where nothing else gives. */
export const nameColumn = <T>(head: string, of: Text<T>): Column<T> => ({ head, text: of, shorten: 'last' });
export const idColumn = <T>(head: string, of: Text<T>): Column<T> => ({
  head,
  text: of,
  shorten: 'first',
  colour: () => 'dim',
});
/** Some words or a sentence. */
export const textColumn = <T>(head: string, of: Text<T>): Column<T> => ({
  head,
  text: of,
  wrapTo: 24,
  below: 'first',
});
export const countColumn = <T>(head: string, of: (item: T) => string | number): Column<T> => ({
  head,
  text: of,
  right: true,
});

const sourceColumn = nameColumn<{ readonly source: string | null }>('source', (item) => item.source);
const errorColumn: Column<{ readonly error_code: string | null }> = {
  ...textColumn('error', (item) => item.error_code),
  wrapTo: 16,
};
/** Of a sender's choice, if it is no status that we know. */
const statusColumn: Column<Items['deliveries']> = { head: 'status', text: statusOf, wrapTo: 10 };

/** Of a delivery with a job, the source tells who sent it. */
const fromColumn: Column<Items['deliveries']> = {
  head: 'from',
  text: (item) => item.remote_address,
  brief: (item) => (item.job_id === null ? item.remote_address : ''),
  below: 'last',
};

const delivery: readonly Column<Items['deliveries']>[] = [
  timeColumn('received (UTC)', (item) => item.received_at),
  sourceColumn,
  wordColumn('outcome', (item) => item.outcome),
  nameColumn('job', (item) => item.job_id),
  statusColumn,
  errorColumn,
  textColumn('reason', (item) => item.reason),
  fromColumn,
  idColumn('id', (item) => item.id),
];

/** What was not confirmed of a replay's events: `2 returned, 1 skipped`. */
const othersOf = ({ counts }: Items['replays']): string =>
  (['returned', 'failed', 'skipped'] as const)
    .filter((name) => counts[name] > 0)
    .map((name) => `${count(counts[name])} ${name}`)
    .join(', ');

/** What came of an operator's action, and why it was done: `still quarantined`, `a test of team A`. */
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

export const COLUMNS: { readonly [N in keyof Items]: readonly Column<Items[N]>[] } = {
  jobs: [
    timeColumn('first seen (UTC)', (item) => item.first_seen_at),
    sourceColumn,
    nameColumn('job', (item) => item.job_id),
    wordColumn('state', (item) => item.state),
    // A completed job has often told of less than 100 %: its last progress would say that it is not complete.
    countColumn('progress', (item) => (item.completed_at === null ? percent(item.highest_progress) : '')),
    { ...countColumn('last heard of', (item) => ago(item.last_seen_at)), drop: true },
    countColumn('took', (item) => (item.duration_ms === null ? '' : duration(item.duration_ms))),
  ],
  deliveries: delivery,
  quarantine: [
    ...delivery.filter(({ head }) => head !== 'outcome' && head !== 'from'),
    { ...timeColumn('released (UTC)', (item) => item.released_at), below: 'first' },
    { ...timeColumn('discarded (UTC)', (item) => item.discarded_at), below: 'first' },
    textColumn('by', (item) => item.discarded_by),
    textColumn('note', (item) => item.discard_note),
  ],
  events: [
    timeColumn('recorded (UTC)', (item) => item.recorded_at),
    nameColumn('event', (item) => item.id),
    wordColumn('kind', (item) => item.kind),
    { head: 'late', text: (item) => (item.late ? 'late' : ''), colour: () => 'yellow' },
    errorColumn,
    { ...countColumn('repeats', (item) => some(item.repeats)), drop: true },
    wordColumn('on the bus', (item) => item.publication),
  ],
  publications: [
    timeColumn('published (UTC)', (item) => item.published_at),
    nameColumn('event', (item) => item.event_id),
    { ...countColumn('attempt', (item) => item.attempt), drop: true },
    wordColumn('result', (item) => item.result),
    { ...countColumn('took', (item) => duration(item.duration_ms)), drop: true },
    textColumn('detail', (item) => item.detail),
    textColumn('queue', (item) => item.queue),
    idColumn('replay', (item) => item.replay_id),
  ],
  outbox: [
    timeColumn('recorded (UTC)', (item) => item.recorded_at),
    wordColumn('state', (item) => item.state),
    nameColumn('event', (item) => item.event_id),
    countColumn('attempts', (item) => item.attempts),
    textColumn('last error', (item) => item.last_error),
    textColumn('queue', (item) => item.queue),
    idColumn('replay', (item) => item.replay_id),
    { head: 'id', text: (item) => item.id, colour: () => 'dim' },
  ],
  replays: [
    timeColumn('created (UTC)', (item) => item.created_at),
    nameColumn('by', (item) => item.created_by),
    wordColumn('state', (item) => item.state),
    countColumn('matched', ({ counts }) => count(counts.matched)),
    countColumn('confirmed', ({ counts }) => count(counts.confirmed)),
    textColumn('others', othersOf),
    textColumn('queue', (item) => item.queue ?? 'the exchange'),
    textColumn('note', (item) => item.note),
    idColumn('id', (item) => item.id),
  ],
  'operator-log': [
    timeColumn('at (UTC)', (item) => item.at),
    nameColumn('who', (item) => item.actor),
    { head: 'role', text: (item) => item.role, drop: true },
    { head: 'did', text: (item) => item.action },
    idColumn('to', (item) => item.subject),
    textColumn('details', ({ detail }) => actionDetails(detail ?? {})),
    sourceColumn,
    { head: 'from', text: (item) => item.remote_address, drop: true },
  ],
};

/** Of a delivery's body. */
export const sizeOf = (value: number | null) => (value === null ? NOTHING : bytes(value));
