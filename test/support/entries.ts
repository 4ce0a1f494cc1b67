// Entries of the outbox, for tests of the relay's memory.

import type { Entry } from '../../src/relay/entry.ts';

/** Of a completed job of the source `default`, unless `of` says otherwise. */
export const newEntry = (position: number, of: Partial<Entry> & Pick<Entry, 'jobId'>): Entry => ({
  position: String(position),
  sequence: String(position),
  source: 'default',
  status: 'completed',
  progress: null,
  late: false,
  occurredAt: null,
  recordedAt: new Date(0),
  data: '{}',
  attempts: 0,
  ...of,
});
