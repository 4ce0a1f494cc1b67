// The demo's second half: the sandbox converts a clip, and a corrupt one, and notifies the relay as the service would. Prints
// the events of both as a subscriber receives them, and compares them with the jobs.

import { setTimeout as sleep } from 'node:timers/promises';
import { CLIP, CORRUPT_CLIP } from '../../src/sandbox/command/clips.ts';
import { createClient, type Job } from '../../src/origin/index.ts';
import { paint, say } from '../output.ts';
import type { Sandbox } from '../sandbox.ts';
import type { Received } from './compare.ts';
import { receive } from './receive.ts';

/** The fields of an event that the demo reads. */
type EventData = {
  readonly subject: string;
  readonly kind: string;
  readonly data: Readonly<Record<string, unknown>>;
};

const CONVERSION_TIMEOUT_MS = 120_000;
const POLL_MS = 50;
const OUTPUT = 'converted.webm';

/** @returns a line for each difference from what is promised */
export async function convertClips(
  sandbox: Sandbox,
  { webhooks, amqpUrl, exchange }: { webhooks: string; amqpUrl: string; exchange: string },
): Promise<string[]> {
  const client = createClient({ url: sandbox.baseUrl, token: sandbox.token });
  const { engine } = await client.me();
  const means =
    engine?.kind === 'ffmpeg' ? `ffmpeg ${engine.version}` : 'simulated: nothing is really converted';
  say(`\n${paint('bold', `Converted by the sandbox (${means}), received by a subscriber`)}`);
  const events: EventData[] = [];
  const subscriber = await receive({ amqpUrl, exchange }, (received) => {
    const event = toEventData(received);
    events.push(event);
    say(describe(event));
  });
  try {
    const order = {
      job_type: 'video',
      input_format: 'mp4',
      output_format: 'webm',
      webhook_url: webhooks,
    } as const;
    const create = (input: string) =>
      client.createJob({
        ...order,
        input_url: `${sandbox.filesUrl}/${input}`,
        output_url: `${sandbox.filesUrl}/${OUTPUT}`,
      });
    const good = await create(CLIP);
    const broken = await create(CORRUPT_CLIP);
    const isOver = (job: Job) =>
      events.some(({ subject, kind }) => subject === job.job_id && kind !== 'progress');
    const deadlineMs = performance.now() + CONVERSION_TIMEOUT_MS;
    while (!(isOver(good) && isOver(broken)) && performance.now() < deadlineMs) await sleep(POLL_MS);
    return [
      ...compareConverted(
        await client.getJob(good.job_id),
        events,
        await sizeOf(`${sandbox.filesUrl}/${OUTPUT}`),
      ),
      ...compareFailed(await client.getJob(broken.job_id), events),
    ];
  } finally {
    await subscriber.stop();
  }
}

function toEventData({ event, routingKey }: Received): EventData {
  const { subject = '', data = {} } = event as { subject?: string; data?: EventData['data'] };
  return { subject, data, kind: routingKey.split('.')[1] ?? '' };
}

function describe({ subject, kind, data }: EventData): string {
  const detail = {
    progress: `${String(data['progress_percentage']).padStart(3)} %`,
    completed: `${String(data['output_size_bytes'])} bytes in ${String(data['processing_time_seconds'])} s, ${String(data['cost_cents'])} cent`,
    failed: `${String(data['error_code'])}: ${String(data['error_message'])}`,
  }[kind];
  return `  ${kind.padEnd(9)}  ${subject}  ${detail ?? ''}`;
}

function compareConverted(job: Job, events: readonly EventData[], outputBytes: number | undefined): string[] {
  const own = events.filter(({ subject }) => subject === job.job_id);
  const last = own.at(-1);
  const percentages = own.map(({ data }) => Number(data['progress_percentage']));
  return [
    ...unless(
      last?.kind === 'completed',
      `the good clip's job ended as ${last?.kind ?? 'nothing'}, not completed`,
    ),
    ...unless(own.length > 1, "nothing was told of the good clip's progress"),
    ...unless(
      percentages.every((value, index) => index === 0 || value > (percentages[index - 1] ?? 0)),
      `progress did not rise: ${percentages.join(', ')}`,
    ),
    ...unless(
      outputBytes !== undefined && last?.data['output_size_bytes'] === outputBytes,
      `the output has ${outputBytes} bytes, the event says ${String(last?.data['output_size_bytes'])}`,
    ),
    ...unless(job.status === 'completed', `the service says that the good clip's job is ${job.status}`),
  ];
}

function compareFailed(job: Job, events: readonly EventData[]): string[] {
  const own = events.filter(({ subject, kind }) => subject === job.job_id && kind !== 'progress');
  const code = own[0]?.data['error_code'];
  return [
    ...unless(
      own.length === 1 && own[0]?.kind === 'failed',
      "the corrupt clip's job did not end as failed, once",
    ),
    ...unless(code === 'INVALID_INPUT', `the corrupt clip's job failed with ${String(code)}`),
  ];
}

const unless = (isSo: boolean, complaint: string): string[] => (isSo ? [] : [complaint]);

async function sizeOf(url: string): Promise<number | undefined> {
  const response = await fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(5_000) });
  return response.ok ? Number(response.headers.get('content-length')) : undefined;
}
