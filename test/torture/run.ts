// One run: starts a world, its senders and its subscriber, plays the scheduled faults for the given time, waits until
// everything is drained, and has the record checked.

import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Guard } from '../../scripts/services/guard.ts';
import { check, type Verdict } from './checker.ts';
import { type Effect, effectsOf } from './effects.ts';
import { playEpisode, RECOVERY_LIMIT_MS } from './episodes.ts';
import type { Fault, Stage } from './faults/index.ts';
import { readLedger } from './ledger-facts.ts';
import { createOperator, type Operator } from './operator.ts';
import { type Decisions, startDecisions } from './decisions.ts';
import { createRandom } from './random.ts';
import type { Episode, Recorded, Injection } from './recorded.ts';
import { type PlannedEpisode, planRun } from './schedule.ts';
import { createSecretsSearch, type SecretsSearch } from './secrets-search.ts';
import { type Senders, startSenders } from './senders.ts';
import { startSubscriber, type Subscriber } from './subscriber.ts';
import { pause, until } from '../support/until.ts';
import { type Servers, startWorld, type World } from './world.ts';
import { OUTBOX } from '../support/outbox.ts';

type RunOptions = {
  readonly guard: Guard;
  readonly seed: number;
  readonly faults: readonly Fault[];
  /** How long faults strike. Starting and draining take additional time. */
  readonly forMs: number;
  /** Goes on after that until each fault has struck. */
  readonly untilAllStruck?: boolean;
  /** And after that, without faults, until so many events were acknowledged: a slow machine needs more time for them. */
  readonly leastEvents?: number;
  /** Below 1, faults are shorter and closer together by this factor. */
  readonly pace: number;
  readonly replicas: number;
  readonly senders: number;
  readonly servers?: Servers;
  /** Settings of the replicas that differ from their defaults. */
  readonly env?: Readonly<Record<string, string>>;
  readonly log: (line: string) => void;
  /** The folder for the logs of a run that broke a promise or failed. */
  readonly evidence?: string;
};

export type Run = {
  readonly recorded: Recorded;
  readonly verdict: Verdict;
  readonly effects: readonly Effect[];
  /** How often the operator retried returned or parked events. */
  readonly operatorRetries: number;
  /** Faults that could not strike here, and why. */
  readonly skipped: readonly string[];
};

/** None of the requested faults can strike here; the message says why. */
export class CannotStrikeError extends Error {}

/** For senders to finish what they have begun. */
const FINISH_LIMIT_MS = 30_000;
/** After the last message: one copy too many would follow at once. */
const QUIET_MS = 500;
const DISK_MEGABYTES = 512;
const DISK_MEGABYTES_A_MINUTE = 40;
/** Without bodies, which are kept as they came. `detail` of a publication is what the outbox had as last_error. */
const KEPT_SECRETS = `
select from deliveries where concat_ws(e'\\n', reason, path, headers) like any ($1::text[])
union all
select from publications where detail like any ($1::text[])
union all
select from ${OUTBOX} where last_error like any ($1::text[])
limit 1`;
const SEARCH_LIMIT_MS = 120_000;
const ALARM = /"level":"fatal"|uncaughtException|unhandledRejection/;

/** @throws Error when the harness itself fails. What Tallyhook does wrong is in the verdict. */
export async function runTorture(options: RunOptions): Promise<Run> {
  const { guard, seed, forMs, log } = options;
  const random = createRandom(seed);
  await using world = await startWorld({
    guard,
    random,
    log,
    replicas: options.replicas,
    diskMegabytes: DISK_MEGABYTES + Math.ceil((forMs / 60_000) * DISK_MEGABYTES_A_MINUTE),
    env: options.env ?? {},
    ...(options.servers && { servers: options.servers }),
    startsReplicas: false,
  });
  const search = createSecretsSearch(world);
  await using subscriber = await startSubscriber({
    urls: world.amqpUrls,
    exchange: world.exchange,
    onProperties: (text) => search.scan("a message's properties", text),
  });
  const operator = createOperator({
    world,
    guard,
    onErrors: (text) => search.scan('the outbox', text),
  });
  const startMs = performance.now();
  const senders = startSenders({
    random: random.fork('senders'),
    senders: options.senders,
    intakes: world.replicas.map(({ intake }) => intake),
    sources: world.sources,
    onAnswer: (text) => search.scan('an answer', text),
  });
  const decisions = startDecisions({ world, random: random.fork('decisions'), token: operator.token });
  const stage: Stage = { world, subscriber, redeliver: senders.redeliver };
  try {
    const { faults, skipped } = strikable(options.faults, stage);
    for (const line of skipped) log(line);
    if (faults.length === 0) throw new CannotStrikeError(skipped.join('; '));
    const parts = { world, stage, subscriber, senders, operator, decisions, search };
    const plan = planRun(random.fork('schedule'), faults, options.pace);
    const awaited = new Set(options.untilAllStruck === true ? faults.map(({ name: each }) => each) : []);
    const { episodes, injections } = await playAll(plan, { ...parts, forMs, awaited, log });
    await untilAcknowledged(senders, options.leastEvents ?? 0);
    const recorded = await finish({ ...parts, seed, startMs, episodes, injections });
    const verdict = check(recorded);
    if (verdict.violations.length > 0) keepLogs(world, options.evidence);
    return { recorded, verdict, effects: effectsOf(recorded), operatorRetries: operator.retries(), skipped };
  } catch (error) {
    // Logged at once, since ending everything may take long.
    log(`the harness fails: ${String(error)}`);
    keepLogs(world, options.evidence);
    throw error;
  } finally {
    await Promise.allSettled([senders.stop(0), decisions.stop(0)]);
  }
}

function keepLogs({ folder, disk, patroni }: World, evidence: string | undefined): void {
  if (evidence === undefined) return;
  mkdirSync(evidence, { recursive: true, mode: 0o700 });
  const logs = readdirSync(folder).filter((file) => file.endsWith('.log'));
  const paths = [...logs, 'rabbitmq/rabbitmq.log'].map((file) => join(folder, file));
  for (const path of [...paths, join(disk?.path ?? folder, 'postgres/postgres.log')]) {
    if (existsSync(path)) copyFileSync(path, join(evidence, basename(path)));
  }
  if (patroni !== undefined) writeFileSync(join(evidence, 'patroni.log'), patroni.log());
}

type Parts = {
  readonly world: World;
  readonly stage: Stage;
  readonly subscriber: Subscriber;
  readonly senders: Senders;
  readonly operator: Operator;
  readonly decisions: Decisions;
  readonly search: SecretsSearch;
};

function strikable(faults: readonly Fault[], stage: Stage): { faults: Fault[]; skipped: string[] } {
  const missing = (fault: Fault) => fault.missing?.(stage);
  return {
    faults: faults.filter((fault) => missing(fault) === undefined),
    skipped: faults
      .filter((fault) => missing(fault) !== undefined)
      .map((fault) => `${fault.name} is skipped: ${missing(fault)}`),
  };
}

const name = ({ faults }: PlannedEpisode) =>
  faults.map(({ fault, forMs }) => `${fault.name} ${(forMs / 1_000).toFixed(1)} s`).join(' + ');

async function playAll(
  plan: Iterable<PlannedEpisode>,
  { forMs, awaited, log, ...parts }: Parts & Pick<RunOptions, 'forMs' | 'log'> & { awaited: Set<string> },
): Promise<{ episodes: Episode[]; injections: Injection[] }> {
  const episodes: Episode[] = [];
  const injections: Injection[] = [];
  const endMs = performance.now() + forMs;
  for (const planned of plan) {
    if (performance.now() >= endMs && awaited.size === 0) break;
    const played = await playEpisode(planned, parts);
    for (const { fault } of planned.faults) awaited.delete(fault.name);
    episodes.push(played.episode);
    injections.push(...played.injections);
    const { recoveredMs, endMs: healedMs } = played.episode;
    const well = recoveredMs === undefined ? 'NOT WELL' : `well in ${Math.round(recoveredMs - healedMs)} ms`;
    const left = played.injections.flatMap(({ unpublished }) =>
      unpublished === undefined ? [] : [`, ${unpublished} committed and not published`],
    );
    log(`${String(planned.number).padStart(3)}  ${name(planned)}: ${well}${left.join('')}`);
    if (recoveredMs === undefined) break; // later faults would show nothing
  }
  return { episodes, injections };
}

/** Waits no longer than a recovery may take: the checker reports why there were too few. */
async function untilAcknowledged(senders: Senders, leastEvents: number): Promise<void> {
  const isEnough = () => senders.acknowledgedEvents() >= leastEvents || undefined;
  await until(`${leastEvents} events are acknowledged`, isEnough, { limitMs: RECOVERY_LIMIT_MS }).catch(
    () => undefined,
  );
}

/** Ends the senders, waits until everything is drained and received, and reads the ledger and the logs. */
async function finish(
  parts: Parts & {
    seed: number;
    startMs: number;
    episodes: readonly Episode[];
    injections: readonly Injection[];
  },
): Promise<Recorded> {
  const { world, subscriber, senders, operator, decisions, search, seed, startMs, episodes, injections } =
    parts;
  await senders.stop(FINISH_LIMIT_MS);
  await decisions.stop(FINISH_LIMIT_MS);
  const finalDrainMs = await operator.drain(performance.now(), RECOVERY_LIMIT_MS);
  await untilReceived(world, subscriber, decisions);
  await pause(QUIET_MS);
  // Counts of refused deliveries are written every 2 s, and the last of them by a replica that stops in order.
  for (const replica of world.replicas) await replica.stop();
  const ledger = await readLedger(world);
  for (const { text } of subscriber.messages) search.scan('the bus', text);
  const logs = world.replicas.map(({ index, log }) => ({ index, text: log() }));
  for (const { index, text } of logs) search.scan(`the log of replica ${index}`, text);
  const kept = await world.query(KEPT_SECRETS, [search.patterns()], SEARCH_LIMIT_MS);
  return {
    seed,
    startMs,
    endMs: performance.now(),
    attempts: senders.attempts,
    messages: subscriber.messages,
    ledger,
    parked: decisions.parked,
    injections,
    episodes,
    exits: world.exits,
    secrets: world.sources.inForce,
    leaks: [...search.found(), ...(kept.length > 0 ? ['the ledger'] : [])],
    alarms: logs.flatMap(({ text }) => text.split('\n').filter((line) => ALARM.test(line))),
    undelivered: senders.undelivered(),
    finalDrainMs,
  };
}

/** Waits for every event of the ledger and an empty queue. What does not arrive the checker reports as lost. */
async function untilReceived(world: World, subscriber: Subscriber, { parked }: Decisions): Promise<void> {
  const discarded = new Set(parked.flatMap(({ eventId, isDiscarded }) => (isDiscarded ? eventId : [])));
  const isAll = async () => {
    const rows = await world.query<{ id: string }>(
      `select source || ':' || job_id || ':' || status || coalesce(':' || progress_percentage, '') as id from events`,
    );
    return rows.every(({ id }) => discarded.has(id) || subscriber.has(id)) &&
      (await subscriber.waiting()) === 0
      ? true
      : undefined;
  };
  await until('all is received', isAll, { limitMs: RECOVERY_LIMIT_MS, pollMs: 500 }).catch(() => undefined);
}
