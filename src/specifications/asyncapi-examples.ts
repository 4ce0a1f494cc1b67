// Examples of each kind of message: a first copy, the same event as a replay's copy, and for progress a late one.

import type { Kind } from '../event/index.ts';
import { messageOf, sampleEvent } from '../testing/index.ts';

const JOB = 'job_7f3a';
const REPLAY = { id: '01a1ff88-d40a-7b7c-ba94-bfc2c6257b47', by: 'on call' };

/** As AsyncAPI has them. They depend on nothing else, so that the document is always the same. */
export function examplesOf(kind: Kind): readonly object[] {
  const payload = sampleEvent({ kind, job: JOB, percent: 45, sequence: 42 });
  const { headers } = messageOf(payload, { replay: REPLAY }).properties;
  const first = { name: 'first', summary: 'The first copy of an event.', payload };
  const copy = { name: 'copy', summary: 'The same event, published again by an operator.', headers, payload };
  return kind === 'progress' ? [first, copy, lateProgress()] : [first, copy];
}

const lateProgress = () => ({
  name: 'late',
  summary: 'Progress that arrived after the end of its job.',
  payload: sampleEvent({ kind: 'progress', job: JOB, percent: 30, sequence: 44, late: true }),
});
