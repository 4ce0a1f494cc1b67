// One example of each kind of message, and a copy of a replay. They depend on nothing, so that the document is always the same.

import {
  dataSchema,
  eventId,
  eventSource,
  eventType,
  type Kind,
  SEQUENCE_DIGITS,
  type Status,
} from '../event/index.ts';
import { parseJson } from '../json.ts';
import { sampleNotification } from '../testing/index.ts';

type Example = { readonly name: string; readonly summary: string; readonly payload: object };

type Data = { readonly status: Status; readonly completed_at?: string; readonly failed_at?: string };

const SOURCE = 'default';
const JOB_ID = 'job_7f3a';
const RECORDED_AT = '2026-01-15T10:35:00.250Z';
const REPLAY = { replay: '01a1ff88-d40a-7b7c-ba94-bfc2c6257b47', replayed_by: 'on call' };

export function examplesOf(kind: Kind): readonly object[] {
  const payload = cloudEvent(kind, { percent: 45, sequence: 42 });
  const first: Example = { name: 'first', summary: 'The first copy of an event.', payload };
  const copy = { name: 'copy', summary: 'The same event, sent again by an operator.', payload };
  const late = {
    name: 'late',
    summary: 'Progress that arrived after the end of its job.',
    payload: { ...cloudEvent(kind, { percent: 30, sequence: 44 }), late: true },
  };
  return [first, { ...copy, headers: REPLAY }, ...(kind === 'progress' ? [late] : [])];
}

function cloudEvent(
  kind: Kind,
  { percent, sequence }: { readonly percent: number; readonly sequence: number },
): object {
  const data = parseJson(sampleNotification(kind, { job: JOB_ID, percent }).toString()) as Data;
  const progress = kind === 'progress' ? percent : null;
  return {
    specversion: '1.0',
    id: eventId(SOURCE, { jobId: JOB_ID, status: data.status, progress }),
    type: eventType(kind),
    source: eventSource(SOURCE),
    subject: JOB_ID,
    time: data.completed_at ?? data.failed_at ?? RECORDED_AT,
    recordedtime: RECORDED_AT,
    sequence: String(sequence).padStart(SEQUENCE_DIGITS, '0'),
    datacontenttype: 'application/json',
    dataschema: dataSchema(kind),
    data,
  };
}
