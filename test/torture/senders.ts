// Many senders at once, each sending the notices of one job after the other as the conversion service does (service
// interface 6): again, after a pause that doubles each time, until it gets a 2xx within 10 s. The pauses are scaled down (0.1 s
// to 2 s), or a run would mostly wait. Records every request with its answer.

import { Agent } from 'node:http';
import { drawJob, type Forgery, HEADER_SECRETS, type Notice } from './notices.ts';
import type { Random } from './random.ts';
import type { Attempt } from './recorded.ts';
import { send } from './request.ts';
import type { SourceName, Sources } from './sources.ts';
import { isAcknowledged, sign } from '../support/sender.ts';
import { pause } from '../support/until.ts';

export type Senders = {
  readonly attempts: readonly Attempt[];
  /** How many different events were acknowledged. */
  readonly acknowledgedEvents: () => number;
  /** Notices that were not acknowledged yet. */
  readonly undelivered: () => string[];
  /** Sends so many acknowledged notices once more, many at a time. */
  readonly redeliver: (count: number) => Promise<void>;
  /** The time of the last acknowledgement by one of these replicas (an empty list means any) since `sinceMs`. */
  readonly acknowledgedSince: (sinceMs: number, replicas: readonly number[]) => number | undefined;
  /** Begins no new jobs. Each sender has `graceMs` to finish what it has begun. */
  readonly stop: (graceMs: number) => Promise<void>;
};

const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 2_000;
const PAUSE_MS = [5, 120] as const;
/** Of so many jobs each request goes to the replica behind that of the request before; of the others, to any. */
const ALTERNATING = 0.5;
const STORM_CONCURRENCY = 64;
/** How many acknowledged notices are remembered, to be sent again. */
const REMEMBERED = 2_000;
const TOO_LARGE_BYTES = 300 * 1024;
/** Answers that no repetition changes. */
const FINAL: ReadonlySet<number> = new Set([400, 405, 413, 415]);

export function startSenders(options: {
  random: Random;
  senders: number;
  /** The address of each replica, through its proxy. */
  intakes: readonly string[];
  sources: Sources;
  /** Gets every answer with its headers, to be searched for secrets. */
  onAnswer: (text: string) => void;
}): Senders {
  const { random, intakes, sources, onAnswer } = options;
  const attempts: Attempt[] = [];
  const remembered: Notice[] = [];
  const open = new Set<string>();
  let stopping = false;
  let stopByMs = Number.POSITIVE_INFINITY;
  let requests = 0;

  async function attempt(notice: Notice, replica: number, agent: Agent | false): Promise<Attempt> {
    const { url, method, headers, body, secret } = toRequest(notice, sources);
    requests += 1;
    const recorded: Attempt = {
      requestId: `r${requests}`,
      notice,
      replica,
      secret,
      startMs: performance.now(),
      endMs: Number.NaN,
      status: undefined,
      error: undefined,
      outcome: undefined,
      eventId: undefined,
      retryAfter: undefined,
      lateAnswerMs: undefined,
    };
    attempts.push(recorded);
    const reply = await send({
      url: `${intakes[replica]}${url}`,
      method,
      headers: { ...headers, ...HEADER_SECRETS, 'X-Request-Id': recorded.requestId },
      body,
      agent,
      onLate: () => {
        recorded.lateAnswerMs = performance.now() - recorded.startMs;
      },
    });
    recorded.endMs = performance.now();
    recorded.status = reply.status;
    recorded.error = reply.error;
    recorded.retryAfter = reply.headers['retry-after'];
    readAnswer(recorded, reply.text);
    onAnswer(`${JSON.stringify(reply.headers)}\n${reply.text}`);
    return recorded;
  }

  function remember(notice: Notice): void {
    remembered.push(notice);
    if (remembered.length > REMEMBERED) remembered.shift();
  }

  /** Sends until it is acknowledged, or rejected for good, or the run is over. */
  async function deliver(
    notice: Notice,
    draw: Random,
    { agent, next }: { agent: Agent | false; next: () => number },
  ): Promise<void> {
    open.add(notice.id);
    for (let retryMs = RETRY_FIRST_MS; performance.now() < stopByMs; ) {
      const replica = next();
      const replicas = notice.isTwin ? intakes.map((_, index) => index) : [replica];
      const answers = await Promise.all(replicas.map((index) => attempt(notice, index, agent)));
      if (answers.some(isDone)) {
        open.delete(notice.id);
        if (answers.some(isAcknowledged) && notice.eventId !== undefined) remember(notice);
        return;
      }
      await pause(retryMs * (0.5 + draw.unit()));
      retryMs = Math.min(RETRY_MAX_MS, retryMs * 2);
    }
  }

  async function run(index: number): Promise<void> {
    const draw = random.fork(`sender ${index}`);
    // Half of the senders keep their connections; half make one for each request.
    const agent = index % 2 === 0 ? new Agent({ keepAlive: true, maxSockets: 64 }) : false;
    for (let job = 0; !stopping; job++) {
      const notices = drawJob(draw.fork(`job ${job}`), `${index}x${job}`);
      const alternates = draw.chance(ALTERNATING);
      let turn = job;
      const inTurn = () => turn++ % intakes.length;
      const anywhere = () => draw.whole(0, intakes.length - 1);
      while (notices.length > 0 && performance.now() < stopByMs) {
        const isPair = notices[1]?.isRace || (notices[0]?.isBeside && notices[1]?.isBeside);
        const together = notices.splice(0, isPair ? 2 : 1);
        const next = alternates || together[0]?.isBeside ? inTurn : anywhere;
        await Promise.all(together.map((notice) => deliver(notice, draw, { agent, next })));
        await pause(draw.whole(...PAUSE_MS));
      }
    }
    if (agent !== false) agent.destroy();
  }

  async function redeliver(count: number): Promise<void> {
    const draw = random.fork(`storm ${requests}`);
    const chosen = draw.shuffled(remembered).slice(0, count);
    const worker = async () => {
      for (let next = chosen.shift(); next !== undefined; next = chosen.shift())
        await attempt(next, draw.whole(0, intakes.length - 1), false);
    };
    await Promise.all(Array.from({ length: STORM_CONCURRENCY }, worker));
  }

  const senders = Array.from({ length: options.senders }, (_, index) => run(index));
  return {
    attempts,
    acknowledgedEvents: () => {
      const ids = new Set(attempts.filter(isAcknowledged).map(({ notice }) => notice.eventId));
      ids.delete(undefined); // quarantined deliveries are acknowledged, too
      return ids.size;
    },
    undelivered: () => [...open],
    redeliver,
    acknowledgedSince: (sinceMs, replicas) => {
      for (let at = attempts.length - 1; at >= 0; at--) {
        const found = attempts[at] as Attempt;
        if (found.startMs < sinceMs) return undefined;
        if (isAcknowledged(found) && (replicas.length === 0 || replicas.includes(found.replica)))
          return found.endMs;
      }
      return undefined;
    },
    stop: async (graceMs) => {
      stopping = true;
      stopByMs = performance.now() + graceMs;
      await Promise.all(senders);
    },
  };
}

/** A forgery is done with its 401; an authentic notice that got a 401 is sent again. */
function isDone(attempt: Attempt): boolean {
  const { status, notice } = attempt;
  if (status === undefined) return false;
  return isAcknowledged(attempt) || FINAL.has(status) || (status === 401 && notice.kind === 'forged');
}

function readAnswer(recorded: Attempt, text: string): void {
  if (recorded.status === undefined) return;
  try {
    const { outcome, event_id: eventId } = JSON.parse(text) as { outcome?: string; event_id?: string | null };
    recorded.outcome = outcome;
    recorded.eventId = eventId ?? undefined;
  } catch {
    recorded.outcome = 'no JSON';
  }
}

type Prepared = {
  readonly url: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly secret: string | undefined;
};

const pathOf = (source: string) => (source === 'default' ? '/webhooks' : `/webhooks/${source}`);

/** Signed with the present secret of its source. */
function toRequest(notice: Notice, sources: Sources): Prepared {
  const { source, body, forgery, refusal } = notice;
  const secret = sources.secretOf(source);
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    'X-Service-Signature': sign(body, secret),
  };
  const prepared: Prepared = { url: pathOf(source), method: 'POST', headers, body, secret };
  if (forgery !== undefined) return forged(prepared, { forgery, source, sources });
  if (refusal === 'encoded') return { ...prepared, headers: { ...headers, 'Content-Encoding': 'gzip' } };
  if (refusal === 'too-large') return { ...prepared, body: body.padEnd(TOO_LARGE_BYTES) };
  return refusal === 'wrong-method' ? { ...prepared, method: 'PUT' } : prepared;
}

function forged(
  prepared: Prepared,
  { forgery, source, sources }: { forgery: Forgery; source: SourceName; sources: Sources },
): Prepared {
  const { body } = prepared;
  const other = source === 'default' ? 'team-a' : 'default';
  const signed = (signature: string | undefined): Prepared => ({
    ...prepared,
    secret: undefined,
    headers: {
      'Content-Type': 'application/json',
      ...(signature !== undefined && { 'X-Service-Signature': signature }),
    },
  });
  const guessed = sign(body, 'a secret that somebody guessed');
  switch (forgery) {
    case 'altered':
      return signed(sign(`${body} `, sources.secretOf(source)));
    case 'unsigned':
      return signed(undefined);
    case 'other-secret':
      return signed(guessed);
    case 'other-source':
      return signed(sign(body, sources.secretOf(other)));
    case 'unknown-source':
      return { ...signed(sign(body, sources.secretOf(source))), url: pathOf('nobody') };
    case 'retired': {
      const retired = sources.retiredSecretOf(source);
      return signed(retired === undefined ? guessed : sign(body, retired));
    }
  }
}
