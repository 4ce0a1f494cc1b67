// What senders send, drawn from the seed alone: jobs and the notices of their events. Besides new events there are repeats,
// conflicts, bodies that must be quarantined, malformed bodies and forgeries. Numbers are written as text, so that none
// becomes a double.

import type { Random } from './random.ts';
import { SOURCE_NAMES, type SourceName } from './sources.ts';

type Kind = 'new' | 'repeat' | 'conflict' | 'quarantine' | 'malformed' | 'forged' | 'refused';

/** How a forgery differs from a delivery that its source signed. */
export type Forgery = 'altered' | 'unsigned' | 'other-secret' | 'other-source' | 'unknown-source' | 'retired';
type Refusal = 'encoded' | 'too-large' | 'wrong-method';

/** One body that a sender sends until it is acknowledged. */
export type Notice = {
  /** Unique in a run. */
  readonly id: string;
  readonly kind: Kind;
  readonly source: SourceName;
  readonly jobId: string;
  /** The expected event id, computed here; undefined for what must never become an event. */
  readonly eventId: string | undefined;
  readonly body: string;
  /** The `data` that subscribers must get if this body makes the event: the body with its times in UTC. */
  readonly data: string;
  readonly forgery?: Forgery;
  readonly refusal?: Refusal;
  /** Sent to every replica at once. */
  readonly isTwin?: boolean;
  /** Sent at the same time as the one before: either may be recorded first. */
  readonly isRace?: boolean;
  /** Another event of the same job is sent at the same time, to another replica: either may be numbered first. */
  readonly isBeside?: boolean;
};

/** Planted in forged and refused bodies: it must be found nowhere. */
export const FORGED_MARK = 'planted-forged-text';
/** Planted in request headers, as a proxy or a sender might do. */
export const HEADER_SECRETS = {
  authorization: 'Bearer planted-authorization-0f3a',
  cookie: 'session=planted-cookie-77c1',
  'x-api-key': 'planted-api-key-5d20',
} as const;

const TERMINALS = ['completed', 'failed'] as const;
const MOVED_BY_MINUTES = [0, 0, 0, 90, -330] as const;
const CHANCE = { repeat: 0.25, twin: 0.08, race: 0.04, conflict: 0.1, nonEvent: 0.12, beside: 0.25 } as const;
const LARGEST_SAFE = 9_007_199_254_740_991;

/** The notices of one job, in the order in which they are to be sent. */
export function drawJob(random: Random, name: string): Notice[] {
  const source = random.pick(SOURCE_NAMES);
  // A job's id may have colons, and event ids must be unambiguous all the same.
  const jobId = `job_${name}${random.chance(0.1) ? ':processing:45' : ''}`;
  const draw = { random, source, jobId, count: 0 };
  const notices: Notice[] = [];
  const percents = Array.from({ length: random.whole(0, 4) }, () => random.whole(0, 100));
  const distinct = new Set(random.chance(0.8) ? percents.toSorted((a, b) => a - b) : percents);
  for (const percent of distinct) notices.push(...drawEvent(draw, 'processing', percent));
  notices.push(...drawEvent(draw, random.chance(0.8) ? 'completed' : 'failed'));
  if (random.chance(0.1)) notices.push(...drawEvent(draw, random.pick(TERMINALS)));
  return pairUp(random, notices);
}

/** Some events that follow each other directly are sent at the same time. */
function pairUp(random: Random, notices: readonly Notice[]): Notice[] {
  const paired = [...notices];
  for (let at = 0; at + 1 < paired.length; at++) {
    const [one, next] = [paired[at] as Notice, paired[at + 1] as Notice];
    const areNew = one.kind === 'new' && next.kind === 'new' && one.eventId !== next.eventId;
    if (!areNew || one.isTwin || next.isTwin || !random.chance(CHANCE.beside)) continue;
    paired.splice(at, 2, { ...one, isBeside: true }, { ...next, isBeside: true });
    at += 1;
  }
  return paired;
}

type Draw = { readonly random: Random; readonly source: SourceName; readonly jobId: string; count: number };
type Status = 'processing' | (typeof TERMINALS)[number];

/** The notice of an event, and the repeats, conflicts and non-events that go with it. */
function drawEvent(draw: Draw, status: Status, percent?: number): Notice[] {
  const { random, source, jobId } = draw;
  const eventId = `${source}:${jobId}:${status}${percent === undefined ? '' : `:${percent}`}`;
  const first = content(draw, status, percent);
  const notices = [
    notice(draw, 'new', { eventId, ...first, ...(random.chance(CHANCE.twin) ? { isTwin: true } : {}) }),
  ];
  if (random.chance(CHANCE.race))
    notices.push(notice(draw, 'conflict', { eventId, ...content(draw, status, percent), isRace: true }));
  if (random.chance(CHANCE.repeat))
    notices.push(notice(draw, 'repeat', { eventId, ...respaced(random, first) }));
  if (random.chance(CHANCE.conflict))
    notices.push(notice(draw, 'conflict', { eventId, ...content(draw, status, percent) }));
  if (random.chance(CHANCE.nonEvent)) notices.push(drawNonEvent(draw, status, percent));
  return notices;
}

type Content = { readonly body: string; readonly data: string };
type Fields = readonly (readonly [name: string, json: string])[];

function notice(
  draw: Draw,
  kind: Kind,
  rest: Content & Partial<Pick<Notice, 'eventId' | 'forgery' | 'refusal' | 'isTwin' | 'isRace'>>,
): Notice {
  draw.count += 1;
  const { source, jobId } = draw;
  return { id: `${jobId}#${draw.count}`, kind, source, jobId, eventId: undefined, ...rest };
}

const json = (fields: Fields) =>
  `{${fields.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;
const quoted = (text: string) => JSON.stringify(text);

/** The fields of service interface 2.1 and 6.2, and unknown fields with numbers that no double can represent. */
function content({ random, jobId }: Draw, status: Status, percent = random.whole(0, 100)): Content {
  const whole = () =>
    String(random.chance(0.2) ? LARGEST_SAFE - random.whole(0, 9) : random.whole(0, 2 ** 31));
  const [created, ended] = [time(random), time(random)];
  const common: Fields = [
    ['job_id', quoted(jobId)],
    ['status', quoted(status)],
    ['progress_percentage', String(percent)],
  ];
  const text = quoted(random.pick(['mp4', 'webm', 'ä€😀', 'a\u0000b', 'a"\\/b']));
  const own: Record<Status, (times: 'sent' | 'utc') => Fields> = {
    processing: (times) => [['estimated_completion', quoted(ended[times])]],
    completed: (times) => [
      ['job_type', '"video"'],
      ['cost_micros', amounts[0]],
      ['cost_cents', amounts[1]],
      ['processing_time_seconds', amounts[2]],
      ['output_size_bytes', amounts[3]],
      ['input_format', text],
      ['output_format', '"webm"'],
      ['created_at', quoted(created[times])],
      ['completed_at', quoted(ended[times])],
    ],
    failed: (times) => [
      ['job_type', '"video"'],
      ['error_message', text],
      ['error_code', '"INVALID_INPUT"'],
      ['created_at', quoted(created[times])],
      ['failed_at', quoted(ended[times])],
    ],
  };
  const amounts = [whole(), whole(), whole(), whole()] as const;
  const extra = extras(random);
  const order = random.shuffled([...common, ...own[status]('sent'), ...extra].map(([name]) => name));
  const inOrder = (fields: Fields) => order.map((name) => fields.find(([known]) => known === name) as never);
  const all = (times: 'sent' | 'utc') => inOrder([...common, ...own[status](times), ...extra]);
  return { body: json(all('sent')), data: json(all('utc')) };
}

const seconds = (at: number) => new Date(at).toISOString().slice(0, 19);

/** One instant: as it is sent, in any time zone, and as it must be published. */
function time(random: Random): { sent: string; utc: string } {
  const minutes = random.pick(MOVED_BY_MINUTES);
  const ms = Date.UTC(
    2026,
    random.whole(0, 11),
    random.whole(1, 28),
    random.whole(0, 23),
    random.whole(0, 59),
  );
  const fraction = random.chance(0.5) ? `.${random.digits(random.whole(1, 9))}` : '';
  const size = Math.abs(minutes);
  const zone = `${minutes < 0 ? '-' : '+'}${String(Math.floor(size / 60)).padStart(2, '0')}:${String(size % 60).padStart(2, '0')}`;
  return {
    sent: `${seconds(ms + minutes * 60_000)}${fraction}${minutes === 0 ? 'Z' : zone}`,
    utc: `${seconds(ms)}${fraction}Z`,
  };
}

function extras(random: Random): Fields {
  const numbers = [
    () => random.digits(random.whole(17, 60)),
    () => `-${random.digits(25)}`,
    () => `${random.digits(5)}.${random.digits(random.whole(18, 30))}`,
    () => `${random.digits(3)}.50`,
    () => `${random.digits(2)}e${random.whole(300, 5_000)}`,
  ];
  const number = () => random.pick(numbers)();
  const choices: Fields = [
    ['x_number', number()],
    ['x_nested', `{"list":[${number()},${number()},null,true],"text":${quoted(random.digits(20))}}`],
    [
      'x_padding',
      quoted('p'.repeat(random.chance(0.05) ? random.whole(1_000, 40_000) : random.whole(0, 200))),
    ],
  ];
  return choices.filter(() => random.chance(0.4));
}

/** The same content with other white space. */
function respaced(random: Random, { body, data }: Content): Content {
  if (random.chance(0.5)) return { body, data };
  return { body: body.replace(/^\{/, '{ \n ').replace(/\}$/, '\t}'), data };
}

const withoutData = (text: string): Content => ({ body: text, data: '' });

/** A notice that must not become an event. */
function drawNonEvent(draw: Draw, status: Status, percent: number | undefined): Notice {
  const { random } = draw;
  const { body } = content(draw, status, percent);
  const mark = `,"x_mark":"${FORGED_MARK}"}`;
  switch (random.pick(['quarantine', 'malformed', 'forged', 'forged', 'refused'] as const)) {
    case 'quarantine':
      return notice(draw, 'quarantine', withoutData(random.pick(quarantined(body))));
    case 'malformed':
      return notice(
        draw,
        'malformed',
        withoutData(random.pick(['[1,2]', '{"status":"completed"}', `${body}}`, 'null', '\ufeff'])),
      );
    case 'forged': {
      const forgeries = [
        'altered',
        'unsigned',
        'other-secret',
        'other-source',
        'unknown-source',
        'retired',
      ] as const;
      return notice(draw, 'forged', {
        ...withoutData(body.replace(/\}$/, mark)),
        forgery: random.pick(forgeries),
      });
    }
    case 'refused':
      return notice(draw, 'refused', {
        ...withoutData(body.replace(/\}$/, mark)),
        refusal: random.pick(['encoded', 'too-large', 'wrong-method'] as const),
      });
  }
}

function quarantined(body: string): string[] {
  return [
    body.replace(/"status":"\w+"/, '"status":"paused"'),
    body.replace(/"progress_percentage":\d+/, '"progress_percentage":101'),
    body.replace(/"progress_percentage":\d+/, `"progress_percentage":"45"`),
    body.replace(/\}$/, ',"x_twice":1,"x_twice":2}'),
    body.replace(/"progress_percentage":\d+/, `"progress_percentage":${LARGEST_SAFE + 1}`),
  ];
}
