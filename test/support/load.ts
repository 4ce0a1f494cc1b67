// Senders that keep sending while faults are at work, as the conversion service would: one notification after the other,
// each again until it gets a 2xx. Keeps every answer for the test to check.

import { Agent, request as plainRequest } from 'node:http';
import { Agent as TlsAgent, request as tlsRequest } from 'node:https';
import { patience } from './patience.ts';
import { completed, isAcknowledged, newJobId, type Notification, progress, sign } from './sender.ts';
import { pause } from './until.ts';

export type Answer = {
  /** Undefined if the connection failed before an answer came. */
  readonly status: number | undefined;
  readonly eventId: string | undefined;
  readonly retryAfter: string | undefined;
  readonly error: string | undefined;
  /** What an answer says that is not 2xx. */
  readonly refusal: string | undefined;
  /** The answer closes its connection. */
  readonly closes: boolean;
  readonly ms: number;
  /** When it came, by `performance.now()`. */
  readonly atMs: number;
};

export type Load = AsyncDisposable & {
  readonly answers: readonly Answer[];
  /** The event ids that got a 2xx so far. */
  readonly acknowledged: () => ReadonlySet<string>;
  /** Waits until so many ids are acknowledged. */
  readonly reached: (count: number) => Promise<void>;
  /** Waits for the answers that are due. What failed is not sent again. */
  readonly stop: () => Promise<void>;
};

const PERCENTAGES = [0, 20, 40, 60, 80];

/** All notifications of one job, in order. */
export function lifeOf(jobId: string): Notification[] {
  return [...PERCENTAGES.map((percent) => progress(jobId, percent)), completed(jobId)];
}

/** Sends one notification on a connection of `agent` (or one of its own) and never rejects. */
export function post(
  url: string,
  notification: Notification,
  options: { agent?: Agent; timeoutMs?: number } = {},
): Promise<Answer> {
  const body = JSON.stringify(notification);
  const startedMs = performance.now();
  const times = () => {
    const atMs = performance.now();
    return { ms: atMs - startedMs, atMs };
  };
  return new Promise((resolve) => {
    const failed = (error: Error & { code?: string }) =>
      resolve({
        status: undefined,
        eventId: undefined,
        retryAfter: undefined,
        error: error.code ?? error.message,
        refusal: undefined,
        closes: true,
        ...times(),
      });
    const request = url.startsWith('https:') ? tlsRequest : plainRequest;
    const outgoing = request(url, {
      method: 'POST',
      ...(options.agent ? { agent: options.agent } : { agent: false }),
      headers: { 'Content-Type': 'application/json', 'X-Service-Signature': sign(body) },
      timeout: options.timeoutMs ?? patience(15_000),
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('no answer')));
    outgoing.on('error', failed);
    outgoing.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', failed);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({
          status: response.statusCode,
          eventId: eventIdOf(text),
          retryAfter: response.headers['retry-after'],
          error: undefined,
          refusal:
            response.statusCode !== undefined && response.statusCode < 300 ? undefined : text.slice(0, 300),
          closes: response.headers.connection === 'close',
          ...times(),
        });
      });
    });
    outgoing.end(body);
  });
}

/** Undefined if the answer names none, or is not of the service: a proxy has pages of its own. */
function eventIdOf(text: string): string | undefined {
  if (!text.startsWith('{')) return undefined;
  return (JSON.parse(text) as { event_id?: string | null }).event_id ?? undefined;
}

/**
 * Starts senders that each have jobs of their own and use the addresses of `urls` in turn. With `keepAlive` each keeps one
 * connection as long as it can; `localAddress` is their source address, and `ca` what they trust. With `redeliver` what was
 * acknowledged is sent once more, to the next address.
 */
export function startLoad(
  urls: () => readonly string[],
  options: {
    senders: number;
    keepAlive?: boolean;
    pauseMs?: number;
    localAddress?: string;
    ca?: string;
    redeliver?: boolean;
  },
): Load {
  const answers: Answer[] = [];
  const acknowledged = new Set<string>();
  let stopping = false;
  let turn = 0;
  let onAnswer = nobodyWaits;

  async function deliverOnce(notification: Notification, agent: Agent | undefined): Promise<boolean> {
    const addresses = urls();
    const answer = await post(
      addresses[turn++ % addresses.length] as string,
      notification,
      agent ? { agent } : {},
    );
    answers.push(answer);
    if (isAcknowledged(answer) && answer.eventId !== undefined) acknowledged.add(answer.eventId);
    onAnswer();
    return isAcknowledged(answer);
  }

  async function send(): Promise<void> {
    const agent = agentOf(options);
    while (!stopping) {
      for (const notification of lifeOf(newJobId())) {
        while (!stopping && !(await deliverOnce(notification, agent))) await pause(options.pauseMs ?? 50);
        if (stopping) break;
        if (options.redeliver) await deliverOnce(notification, agent);
        if (options.pauseMs) await pause(options.pauseMs);
      }
    }
    agent?.destroy();
  }

  const senders = Array.from({ length: options.senders }, send);
  const stop = async () => {
    stopping = true;
    await Promise.all(senders);
  };
  return {
    answers,
    acknowledged: () => acknowledged,
    reached: (count) =>
      new Promise((resolve) => {
        onAnswer = () => {
          if (acknowledged.size >= count) resolve();
        };
        onAnswer();
      }),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Undefined where each delivery has a connection of its own anyway. */
function agentOf({
  keepAlive = false,
  localAddress,
  ca,
}: Parameters<typeof startLoad>[1]): Agent | undefined {
  const shared = { keepAlive, maxSockets: 1, ...(localAddress && { localAddress }) };
  if (ca !== undefined) return new TlsAgent({ ...shared, ca });
  return keepAlive || localAddress ? new Agent(shared) : undefined;
}

/** The longest time without a 2xx between the first and the last one. */
export const longestPauseMs = (answers: readonly Answer[]): number =>
  longestGapMs(answers.filter(isAcknowledged).map(({ atMs }) => atMs));

/** Between one time and the next; 0 if there are not two. */
export const longestGapMs = (timesMs: readonly number[]): number =>
  Math.max(0, ...timesMs.slice(1).map((atMs, index) => atMs - (timesMs[index] ?? atMs)));

function nobodyWaits(): void {}
