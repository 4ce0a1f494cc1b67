// From the figures of `npm run bench -- --scale-out` to the tables of docs/scale.md, and the model of larger installations that
// reckons with them. Pure, but for the document that it writes. Figures are medians over the rounds.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../scripts/relay.ts';
import { fillIn } from './document.ts';
import { acks, confirmed, cpuUs, type Figure } from './figures.ts';
import { type Results, type Run, type ScaleOutCase, spreadOf, type SubjectName } from './results.ts';
import { markdown, NONE, rate, variantsOf, withSpread } from './tables.ts';

const PAGE = 'docs/scale.md';

/** CPU microseconds for an event. */
type Costs = Readonly<Record<'service' | 'postgres' | 'rabbitmq', number>>;

export type Measured = {
  readonly intake: Costs;
  readonly relay: Costs;
  /** Of both in one replica at once, at `bothPerS`. */
  readonly both: Costs;
  /** The most that one leader's relay published in a second, and that a bare publisher did. */
  readonly relayPerS: number;
  readonly publisherPerS: number;
  /** The most that was accepted and published in a second. */
  readonly bothPerS: number;
  /** What one replica may open. */
  readonly sessionsMax: number;
};

export type Modelled = {
  readonly perS: number;
  /** Cores that are busy. */
  readonly cores: Costs;
  /** Of what one leader's relay publishes, and of what one RabbitMQ takes from a bare publisher. */
  readonly relayShare: number;
  readonly brokerShare: number;
  readonly installations: number;
  /** Of all installations. */
  readonly replicas: number;
  /** With the Postgres of one installation. */
  readonly sessions: number;
  readonly walMBPerS: number;
  readonly diskGBPerDay: number;
  readonly eventsPerDay: number;
};

/** Bytes for an event with a body of half a KiB (docs/deploy.md#sizes): until its retention is over, for good, and of the WAL. */
export const BYTES = { kept: 980, forGood: 500, wal: 2_392 } as const;
/** The longest ledger that was measured (the same section). */
export const LEDGER_EVENTS = 10_000_000;
export const RATES = [10, 1_000, 100_000] as const;

/** A replica has one core, and is to have room for a peak, and for the load of another one that is gone. */
const FILLED = 0.7;
const REPLICAS_MIN = 2;
const DAY_S = 86_400;
const DAYS = 30;
const SECOND_US = 1_000_000;

/**
 * Pure. What so many events a second take, if each costs what it cost when it was measured: what the intake and the relay cost alone,
 * or both at once, whichever is more. A backlog is published in larger parts, which RabbitMQ takes for less.
 */
export function modelOf(measured: Measured, perS: number): Modelled {
  const { intake, relay, both, relayPerS, publisherPerS, sessionsMax } = measured;
  const coresOf = (of: keyof Costs) => (perS * Math.max(intake[of] + relay[of], both[of])) / SECOND_US;
  const cores = { service: coresOf('service'), postgres: coresOf('postgres'), rabbitmq: coresOf('rabbitmq') };
  const relayShare = perS / relayPerS;
  const installations = Math.ceil(relayShare);
  const each = Math.max(REPLICAS_MIN, Math.ceil(cores.service / FILLED / installations));
  return {
    perS,
    cores,
    relayShare,
    brokerShare: perS / publisherPerS,
    installations,
    replicas: installations * each,
    sessions: each * sessionsMax,
    walMBPerS: (perS * BYTES.wal) / 1e6,
    diskGBPerDay: (perS * DAY_S * (BYTES.kept + BYTES.forGood)) / 1e9,
    eventsPerDay: perS * DAY_S,
  };
}

type Section = { readonly name: string; readonly text: string };

/** By the name in the document's markers. Sections whose runs are missing are left out. */
export function scaleOutSections({ runs, ...about }: Results): Section[] {
  const measured = measuredIn(runs);
  return [
    { name: 'scale-about', text: aboutLine(about) },
    ...section('replicas-alone', replicasTable(runs)),
    ...section('relay-alone', relayTable(runs)),
    ...section('costs-alone', costsTable(runs)),
    ...section('model', measured && modelTable(measured)),
  ];
}

/** @returns the path. @throws Error if the document lacks the markers */
export function writeScaleOut(sections: readonly Section[]): string {
  const path = join(ROOT, PAGE);
  const text = sections.reduce(
    (page, { name, text: content }) => fillIn(page, name, content, PAGE),
    readFileSync(path, 'utf8'),
  );
  writeFileSync(path, text);
  return PAGE;
}

const section = (name: string, text: string | undefined): Section[] =>
  text === undefined ? [] : [{ name, text }];

function aboutLine({
  hardware,
  startedAt,
  endedAt,
  commit,
  command,
  skipped,
}: Omit<Results, 'runs'>): string {
  const minutes = (Date.parse(endedAt) - Date.parse(startedAt)) / 60_000;
  const at = `${startedAt.slice(0, 16).replace('T', ' ')} UTC`;
  const lines = [
    `Measured ${at} in ${minutes.toFixed(0)} minutes by \`${command}\`, commit ${commit}: ${hardware['Processor']}, cores: ${hardware['Cores']}.`,
    ...skipped.map((each) => `Skipped: ${each}.`),
  ];
  return lines.join('\n');
}

type Found = (figure: Figure) => ReturnType<typeof spreadOf>;

const finder =
  (
    runs: readonly Run[],
    name: ScaleOutCase,
    where: { variant?: string; subject?: SubjectName } = {},
  ): Found =>
  (figure) =>
    spreadOf(runs, { case: name, ...where }, figure);

function replicasTable(runs: readonly Run[]): string | undefined {
  const variants = variantsOf(runs, 'replicas with a quota');
  if (variants.length === 0) return undefined;
  const find = (variant: string) => finder(runs, 'replicas with a quota', { variant });
  const first = find(variants[0] ?? '');
  const rows = variants.map((variant) => {
    const found = find(variant);
    const of = (figure: Figure) => ratio(found(figure)?.median, first(figure)?.median);
    return [
      variant,
      withSpread(found(acks)),
      of(acks),
      withSpread(found(confirmed)),
      of(confirmed),
      whole(found(({ backlogAtEnd }) => backlogAtEnd)?.median),
      ms(found(({ answer }) => answer?.p50Ms)?.median),
      ms(found(({ answer }) => answer?.p99Ms)?.median),
      ...ROLES.map((role) => whole(found(cpuUs(role))?.median)),
      cores(found(({ busyCores }) => busyCores)?.median),
      // The most of all rounds, since it is to stay below a limit.
      `${whole(found(({ sessions }) => sessions)?.max)} of ${whole(found(({ sessionsMax }) => sessionsMax)?.max)}`,
      `${whole(found(({ peakRssMiB }) => peakRssMiB)?.median)} MiB`,
    ];
  });
  const heads = ['acks/s', 'of one', 'confirmed/s', 'of one', 'backlog at the end', 'answer p50', 'p99'];
  const costs = ['replicas µs', 'Postgres µs', 'RabbitMQ µs', 'cores busy', 'sessions', 'memory'];
  return markdown(['', ...heads, ...costs], rows);
}

/** The service itself comes first, by the name of its processes. */
const ROLES = ['tallyhook', 'postgres', 'rabbitmq'] as const;

function relayTable(runs: readonly Run[]): string | undefined {
  const rows = variantsOf(runs, 'relay alone').flatMap((variant) =>
    (['tallyhook', 'confirm publisher'] as const).flatMap((subject) => {
      const found = finder(runs, 'relay alone', { variant, subject });
      const perS = found(confirmed);
      if (perS === undefined) return [];
      const publisher = finder(runs, 'relay alone', { variant, subject: 'confirm publisher' })(confirmed);
      const costs = [subject, 'postgres', 'rabbitmq', 'subscriber'].map((role) => found(cpuUs(role))?.median);
      const used = costs.map((us) => (us === undefined ? undefined : (us * perS.median) / SECOND_US));
      const label = subject === 'tallyhook' ? 'one leader’s relay' : 'bare publisher';
      const ofPublisher = ratio(perS.median, publisher?.median);
      return [
        [`${label}, ${variant}`, withSpread(perS), ofPublisher, ...costs.map(whole), ...used.map(cores)],
      ];
    }),
  );
  if (rows.length === 0) return undefined;
  const roles = ['itself', 'Postgres', 'RabbitMQ', 'subscriber'];
  const heads = [...roles.map((role) => `${role} µs`), ...roles.map((role) => `${role}, cores`)];
  return markdown(['', 'events/s', 'of the publisher', ...heads], rows);
}

const QUORUM = { variant: 'quorum queue', subject: 'tallyhook' } as const;

function costsTable(runs: readonly Run[]): string | undefined {
  const kinds = [
    ['intake alone', finder(runs, 'intake alone'), acks],
    ['relay alone', finder(runs, 'relay alone', QUORUM), confirmed],
    ['both in one replica at once', finder(runs, 'intake and relay'), confirmed],
  ] as const;
  const rows = kinds.flatMap(([label, found, figure]) => {
    const perS = found(figure);
    const costs = ROLES.map((role) => whole(found(cpuUs(role))?.median));
    const wal = whole(found(({ walBytesPerEvent }) => walBytesPerEvent)?.median);
    return perS === undefined ? [] : [[label, withSpread(perS), ...costs, wal]];
  });
  if (rows.length === 0) return undefined;
  return markdown(
    ['for an event', 'events/s', 'service µs', 'Postgres µs', 'RabbitMQ µs', 'WAL bytes'],
    rows,
  );
}

/** Pure. What the model needs; undefined if something was not measured. */
export function measuredIn(runs: readonly Run[]): Measured | undefined {
  const [intake, relay] = [finder(runs, 'intake alone'), finder(runs, 'relay alone', QUORUM)];
  const relayPerS = relay(confirmed)?.median;
  const publisherPerS = finder(runs, 'relay alone', { ...QUORUM, subject: 'confirm publisher' })(
    confirmed,
  )?.median;
  const both = finder(runs, 'intake and relay');
  const bothPerS = both(confirmed)?.median;
  const sessionsMax = finder(runs, 'replicas with a quota', { variant: '1 replica' })(
    (figures) => figures.sessionsMax,
  )?.median;
  if (relayPerS === undefined || bothPerS === undefined || sessionsMax === undefined) return undefined;
  if (intake(acks) === undefined || publisherPerS === undefined) return undefined;
  return {
    intake: costsOf(intake),
    relay: costsOf(relay),
    both: costsOf(both),
    relayPerS,
    publisherPerS,
    bothPerS,
    sessionsMax,
  };
}

function costsOf(found: Found): Costs {
  const of = (role: string) => found(cpuUs(role))?.median ?? 0;
  return { service: of('tallyhook'), postgres: of('postgres'), rabbitmq: of('rabbitmq') };
}

/** A dagger marks what no run has shown: a rate above the highest one, or more events than the longest ledger had. */
export function modelTable(measured: Measured): string {
  const models = RATES.map((perS) => modelOf(measured, perS));
  const isRateShown = ({ perS }: Modelled) => perS <= measured.bothPerS;
  const row = (name: string, cell: (model: Modelled) => string, isShown = isRateShown) => [
    name,
    ...models.map((model) => `${cell(model)}${isShown(model) ? '' : ' †'}`),
  ];
  const isLedgerShown =
    (days: number) =>
    ({ eventsPerDay }: Modelled) =>
      eventsPerDay * days <= LEDGER_EVENTS;
  const rows = [
    row('service, cores', (model) => cores(model.cores.service)),
    row('Postgres, cores', (model) => cores(model.cores.postgres)),
    row('RabbitMQ, cores', (model) => cores(model.cores.rabbitmq)),
    row('of what one leader’s relay published', (model) => share(model.relayShare)),
    row('of what one RabbitMQ took from a bare publisher', (model) => share(model.brokerShare)),
    row('installations, at least', (model) => rate(model.installations)),
    row('replicas of one core, in all', (model) => rate(model.replicas)),
    row('sessions with each Postgres', (model) => rate(model.sessions)),
    row('WAL', (model) => `${short(model.walMBPerS)} MB/s`),
    row('disk, a day', (model) => bytes(model.diskGBPerDay), isLedgerShown(1)),
    row(`disk, after ${DAYS} days`, (model) => bytes(model.diskGBPerDay * DAYS), isLedgerShown(DAYS)),
  ];
  const found = `Above ${rate(measured.bothPerS)} events a second, and above ${rate(LEDGER_EVENTS)} events in a ledger, this is arithmetic (†).`;
  return `${markdown(['events a second', ...RATES.map(rate)], rows)}\n\n${found}`;
}

const whole = (value: number | undefined) => (value === undefined ? NONE : rate(value));
const ms = (value: number | undefined) => (value === undefined ? NONE : `${rate(value)} ms`);
const cores = (value: number | undefined) => (value === undefined ? NONE : short(value));
const ratio = (value: number | undefined, of: number | undefined) =>
  value === undefined || !of ? NONE : `${(value / of).toFixed(2)} ×`;
const share = (value: number) => `${short(value * 100)} %`;
const bytes = (gb: number) => (gb < 1_000 ? `${short(gb)} GB` : `${short(gb / 1_000)} TB`);

/** With two digits, or all before the point. */
function short(value: number): string {
  if (value >= 10) return rate(value);
  if (value >= 1) return value.toFixed(1);
  return value === 0 ? '0' : value.toFixed(value < 0.01 ? 4 : 2);
}
