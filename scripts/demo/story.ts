// The demo's deliveries: for each, the answer and the event on the bus that must follow. Written from the interface alone, with
// its own signing: it shares no code with the service that it checks.

import { createHmac, randomBytes } from 'node:crypto';

export type Step = {
  readonly what: string;
  /** What follows `/webhooks`: empty, or `/` and a source. */
  readonly path: string;
  readonly body: string;
  readonly signature: string;
  readonly expected: { readonly status: number; readonly outcome: string; readonly eventId: string | null };
  /** What a subscriber gets; undefined if nothing. */
  readonly event: ExpectedEvent | undefined;
};

export type ExpectedEvent = {
  readonly id: string;
  readonly kind: 'completed' | 'failed' | 'progress';
  readonly source: string;
  readonly late: boolean;
  readonly data: Notification;
};

export type Answer = {
  readonly status: number;
  /** The outcome, or the error's code. */
  readonly outcome: string;
  readonly eventId: string | null;
  readonly ms: number;
};

type Notification = Readonly<Record<string, string | number>> & {
  readonly job_id: string;
  readonly status: string;
};

/** The sender's own limit. */
const ANSWER_TIMEOUT_MS = 10_000;

type Expected = Step['expected'];
type PostOptions = { readonly source?: string; readonly signed?: string; readonly event?: ExpectedEvent };

const UNAUTHORIZED: Expected = { status: 401, outcome: 'unauthorized', eventId: null };

export function story(secrets: Readonly<Record<string, string>>, namedSource: string): Step[] {
  const job = `job_${randomBytes(4).toString('hex')}`;
  const otherJob = `job_${randomBytes(4).toString('hex')}`;

  function post(what: string, body: string, expected: Expected, options: PostOptions = {}): Step {
    const { source = 'default', signed = body, event } = options;
    const path = source === 'default' ? '' : `/${source}`;
    return { what, path, body, signature: sign(signed, secrets[source] ?? ''), expected, event };
  }
  function accepted(what: string, data: Notification, { source = 'default', late = false } = {}): Step {
    const event = toEvent(data, source, late);
    return post(
      what,
      JSON.stringify(data),
      { status: 202, outcome: 'accepted', eventId: event.id },
      { source, event },
    );
  }
  function known(outcome: 'duplicate' | 'conflict', what: string, data: Notification): Step {
    const eventId = toEvent(data, 'default', false).id;
    return post(what, JSON.stringify(data), { status: 200, outcome, eventId });
  }

  const done = completed(job);
  const doneText = JSON.stringify(done);
  const paused = JSON.stringify({ ...progress(job, 50), status: 'paused' });
  return [
    accepted('progress 10', progress(job, 10)),
    known('duplicate', 'progress 10 again', progress(job, 10)),
    accepted('progress 45', progress(job, 45)),
    known('duplicate', 'progress 45 again', progress(job, 45)),
    accepted('completed', done),
    known('duplicate', 'completed again', done),
    known('conflict', 'completed, another cost', { ...done, cost_micros: 1, cost_cents: 1 }),
    accepted('progress 70, after the end', progress(job, 70), { late: true }),
    accepted('another job failed', failed(otherJob)),
    post('unknown status', paused, { status: 202, outcome: 'quarantined', eventId: null }),
    post('no job_id', '{"status":"completed"}', { status: 400, outcome: 'malformed', eventId: null }),
    post('tampered with', `${doneText} `, UNAUTHORIZED, { signed: doneText }),
    post('unknown source', doneText, UNAUTHORIZED, { source: 'nobody' }),
    accepted('the same job id, another source', done, { source: namedSource }),
  ];
}

export async function send(webhooks: string, { path, body, signature }: Step): Promise<Answer> {
  const startedMs = performance.now();
  const response = await fetch(`${webhooks}${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Service-Signature': signature },
    body,
    signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
  });
  const answer = (await response.json()) as { outcome?: string; error?: string; event_id?: string | null };
  return {
    status: response.status,
    outcome: answer.outcome ?? answer.error ?? '',
    eventId: answer.event_id ?? null,
    ms: performance.now() - startedMs,
  };
}

function sign(body: string, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

function toEvent(data: Notification, source: string, late: boolean): ExpectedEvent {
  const { job_id: job, status } = data;
  if (status === 'processing') {
    const id = `${source}:${job}:processing:${data['progress_percentage']}`;
    return { id, kind: 'progress', source, late, data };
  }
  return {
    id: `${source}:${job}:${status}`,
    kind: status === 'failed' ? 'failed' : 'completed',
    source,
    late,
    data,
  };
}

function progress(job: string, percentage: number): Notification {
  return {
    job_id: job,
    status: 'processing',
    progress_percentage: percentage,
    estimated_completion: '2026-01-15T10:35:00Z',
  };
}

function completed(job: string): Notification {
  return {
    job_id: job,
    status: 'completed',
    job_type: 'video',
    progress_percentage: 100,
    cost_micros: 1_250_000,
    cost_cents: 125,
    processing_time_seconds: 42,
    output_size_bytes: 10_485_760,
    input_format: 'mp4',
    output_format: 'webm',
    created_at: '2026-01-15T10:30:00Z',
    completed_at: '2026-01-15T10:34:42Z',
  };
}

function failed(job: string): Notification {
  return {
    job_id: job,
    status: 'failed',
    job_type: 'video',
    progress_percentage: 30,
    error_message: 'the input file is corrupted or cannot be read',
    error_code: 'INVALID_INPUT',
    created_at: '2026-01-15T10:30:00Z',
    failed_at: '2026-01-15T10:31:00Z',
  };
}
