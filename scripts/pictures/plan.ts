// What the sources send before the pictures are taken: six hours of ordinary jobs, and one of each kind of trouble. The same
// every time, apart from the clock.

import { createHash } from 'node:crypto';

export type Sent = {
  readonly source: string;
  readonly minutesAgo: number;
  readonly body: string;
  /** Where not set, it is signed with the source's secret. */
  readonly isForged?: boolean;
  /** What is expected of the relay. */
  readonly status: number;
};

export const SOURCES = ['default', 'mobile-app', 'studio'] as const;
/** No queue is bound for its events. */
export const UNBOUND = 'archive';
/** The queue for its failures is full. */
export const FULL = 'studio';
/** What happened to it is shown. */
export const STORY = { source: 'default', jobId: 'job_5e2a71c4' } as const;

const JOBS = 420;
const SPAN_MINUTES = 355;
const MINUTE_MS = 60_000;
const OVER_LIMIT_BYTES = 300_000;

type Fields = Readonly<Record<string, string | number>>;

export function plan(nowMs: number): Sent[] {
  const sent = [...Array.from({ length: JOBS }, (_, n) => ordinary(n, nowMs)).flat(), ...trouble(nowMs)];
  return sent.toSorted((a, b) => b.minutesAgo - a.minutesAgo);
}

/** More in some hours than in others. */
function minutesAgoOf(n: number): number {
  const part = n / JOBS;
  return SPAN_MINUTES * (1 - part + 0.04 * Math.sin(part * 6 * Math.PI)) + 4;
}

function ordinary(n: number, nowMs: number): Sent[] {
  const source = SOURCES[[0, 0, 1, 0, 2, 0, 1, 0, 0, 1][n % 10] ?? 0] ?? 'default';
  const jobId = idOf(n);
  const begun = minutesAgoOf(n);
  const minutes = 1 + (n % 7) / 3;
  const at = (minutesAgo: number, data: Fields): Sent => ({
    source,
    minutesAgo,
    body: JSON.stringify({ job_id: jobId, ...data }),
    status: 202,
  });
  const steps = [at(begun, progress(25)), at(begun - minutes / 2, progress(60))];
  if (n % 70 === 33) return steps;
  const end =
    n % 13 === 5 && source !== FULL
      ? failed(begun, minutes, nowMs)
      : completed(begun, minutes, nowMs, source === 'mobile-app' && n % 3 === 0);
  const last = at(begun - minutes, end);
  return [
    ...steps,
    last,
    ...(n % 9 === 4 ? [{ ...last, minutesAgo: last.minutesAgo - 0.1, status: 200 }] : []),
  ];
}

const sentBy = (source: string, jobId: string, minutesAgo: number, data: Fields, status = 202): Sent => ({
  source,
  minutesAgo,
  body: JSON.stringify({ job_id: jobId, ...data }),
  status,
});

function trouble(nowMs: number): Sent[] {
  const story = (minutesAgo: number, data: Fields, status?: number) =>
    sentBy(STORY.source, STORY.jobId, minutesAgo, data, status);
  const done = completed(84, 4, nowMs);
  return [
    story(84, progress(10)),
    story(82, progress(45)),
    story(81.9, progress(45), 200),
    story(80, done),
    story(79.9, done, 200),
    story(79, { ...done, cost_micros: 1_310_000, cost_cents: 131 }, 200),
    story(78, progress(70)),
    ...[0, 1, 2, 3].map((n) =>
      sentBy('studio', idOf(900 + n), 150 - n * 31, { status: 'paused', progress_percentage: 40 }),
    ),
    ...[4, 5].map((n) =>
      sentBy('mobile-app', idOf(900 + n), 70 - n, { status: 'processing', progress_percentage: 140 }),
    ),
    sentBy('default', idOf(906), 26, { status: 'completed', job_type: 'video' }),
    ...[0, 1, 2, 3, 4].map((n) =>
      sentBy(UNBOUND, idOf(910 + n), 95 - n * 17, completed(95 - n * 17, 2, nowMs)),
    ),
    ...[0, 1].map((n) => sentBy(FULL, idOf(920 + n), 48 - n * 9, failed(48 - n * 9, 2, nowMs))),
    ...[0, 1, 2].map((n) => ({
      ...sentBy('mobile-app', idOf(930 + n), 118 - n, progress(5), 401),
      isForged: true,
    })),
    { source: 'default', minutesAgo: 210, body: '{"status":"completed"}', status: 400 },
    { source: 'studio', minutesAgo: 33, body: '{"job_id":', status: 400 },
    { source: 'studio', minutesAgo: 170, body: 'x'.repeat(OVER_LIMIT_BYTES), status: 413 },
  ];
}

export function idOf(n: number): string {
  return `job_${createHash('sha256').update(`picture ${n}`).digest('hex').slice(0, 8)}`;
}

export const progress = (percentage: number): Fields => ({
  status: 'processing',
  progress_percentage: percentage,
});

/** @param begun minutes ago. @param watermark a field that our schemas do not know */
export function completed(begun: number, minutes: number, nowMs: number, watermark = false): Fields {
  const seconds = Math.round(minutes * 60);
  return {
    status: 'completed',
    job_type: 'video',
    progress_percentage: 100,
    cost_micros: seconds * 5_200,
    cost_cents: Math.round((seconds * 5_200) / 10_000),
    processing_time_seconds: seconds,
    output_size_bytes: 10_485_760 + seconds * 4_099,
    input_format: 'mp4',
    output_format: 'webm',
    created_at: timeText(nowMs, begun + 1),
    completed_at: timeText(nowMs, begun - minutes),
    ...(watermark && { watermark: 'none' }),
  };
}

function failed(begun: number, minutes: number, nowMs: number): Fields {
  const [code, text] =
    Math.round(begun) % 3 === 0
      ? ['TIMEOUT', 'the conversion took too long']
      : ['INVALID_INPUT', 'the input file is corrupted or cannot be read'];
  return {
    status: 'failed',
    job_type: 'video',
    progress_percentage: 30,
    error_message: text ?? '',
    error_code: code ?? '',
    created_at: timeText(nowMs, begun + 1),
    failed_at: timeText(nowMs, begun - minutes),
  };
}

const timeText = (nowMs: number, minutesAgo: number) =>
  new Date(Math.round((nowMs - minutesAgo * MINUTE_MS) / 1_000) * 1_000).toISOString();
