// The report of a run: the summary on the terminal, the results as JSON, and the table in docs/reliability.md.

import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import type { Verdict, Violation } from './checker.ts';
import { type Effect, TOGETHER } from './effects.ts';
import { FAULTS, MIGRATION } from './faults/index.ts';
import type { Run } from './run.ts';
import { type Servers, SINGLE } from './world.ts';

/** The settings that repeat a run. */
type Settings = {
  readonly seed: number;
  readonly minutes: number;
  readonly faults: readonly string[] | undefined;
  readonly pace: number;
  readonly replicas: number;
  readonly senders: number;
  readonly servers?: Servers;
};

export type Results = {
  readonly date: string;
  readonly commandLine: string;
  readonly machine: {
    readonly cpus: number;
    readonly memoryMB: number;
    readonly kernel: string;
    readonly node: string;
  };
  readonly settings: Settings;
  readonly episodes: { readonly alone: number; readonly together: number };
  readonly lastedMs: number;
  readonly counts: Verdict['counts'];
  readonly operatorRetries: number;
  readonly finalDrainMs: number | undefined;
  readonly skipped: readonly string[];
  readonly violations: readonly Violation[];
  readonly effects: readonly Effect[];
};

/** A run on clusters has a table of its own. */
const markers = ({ servers = SINGLE }: Settings) => {
  const name =
    servers.postgres === 'single' && servers.rabbitmq === 'single' ? 'torture' : 'torture-clusters';
  return { begin: `<!-- ${name}:begin -->`, end: `<!-- ${name}:end -->` };
};
const SHOWN_VIOLATIONS = 40;

export function commandLine({
  seed,
  minutes,
  faults,
  pace,
  replicas,
  senders,
  servers = SINGLE,
}: Settings): string {
  const named = faults === undefined ? '' : ` --faults ${faults.join(',')}`;
  const paced = pace === 1 ? '' : ` --pace ${pace}`;
  const clustered = Object.entries(servers).flatMap(([name, of]) =>
    of === 'single' ? [] : ` --${name} ${of}`,
  );
  return `npm run torture -- --seed ${seed} --minutes ${minutes}${named}${paced}${clustered.join('')} --replicas ${replicas} --senders ${senders}`;
}

export function toResults(
  { recorded, verdict, effects, operatorRetries, skipped }: Run,
  plan: Settings,
): Results {
  const { seed, minutes, faults, pace, replicas, senders, servers = SINGLE } = plan;
  const settings = { seed, minutes, faults, pace, replicas, senders, servers };
  const struck = recorded.episodes.map(
    ({ number }) => recorded.injections.filter(({ episode }) => episode === number).length,
  );
  return {
    date: new Date().toISOString(),
    commandLine: commandLine(settings),
    machine: {
      cpus: cpus().length,
      memoryMB: Math.round(totalmem() / 2 ** 20),
      kernel: release(),
      node: process.version,
    },
    settings,
    episodes: {
      alone: struck.filter((count) => count === 1).length,
      together: struck.filter((count) => count > 1).length,
    },
    lastedMs: Math.round(recorded.endMs - recorded.startMs),
    counts: verdict.counts,
    operatorRetries,
    finalDrainMs: recorded.finalDrainMs,
    skipped,
    violations: verdict.violations,
    effects,
  };
}

export function summary(results: Results): string[] {
  const { counts, violations, episodes } = results;
  const shown = violations.slice(0, SHOWN_VIOLATIONS).map(({ kind, what }) => `  ${kind}: ${what}`);
  const more = violations.length - shown.length;
  return [
    '',
    `${episodes.alone} faults alone, ${episodes.together} times several together, in ${seconds(results.lastedMs)}`,
    `${counts.requests} requests, ${counts.acknowledged} acknowledged, ${counts.events} events, ${counts.messages} messages`,
    `lost ${counts.lost}, unexpected ${counts.unexpected}, duplicated ${counts.duplicated}, recovered ${counts.recovered}`,
    `${counts.parked} parks held, ${counts.discarded} events discarded`,
    ...(violations.length === 0
      ? ['every promise was kept']
      : [`${violations.length} promises broken:`, ...shown, ...(more > 0 ? [`  and ${more} more`] : [])]),
    `repeat: ${results.commandLine}`,
  ];
}

const seconds = (ms: number | undefined) => (ms === undefined ? 'never' : `${(ms / 1_000).toFixed(1)} s`);

/** Replaces what is between the markers; the rest of the page is written by hand. */
export function writeDocs(results: Results, path: string): void {
  const text = readFileSync(path, 'utf8');
  const marked = markers(results.settings);
  const [begin, end] = [text.indexOf(marked.begin), text.indexOf(marked.end)];
  if (begin < 0 || end < begin) throw new Error(`${path} lacks ${marked.begin} and ${marked.end}`);
  const rendered = [marked.begin, '', ...markdown(results), ''].join('\n');
  writeFileSync(path, `${text.slice(0, begin)}${rendered}${text.slice(end)}`);
}

function markdown(results: Results): string[] {
  const { counts, machine, episodes, violations } = results;
  return [
    `\`${results.commandLine}\`, ${results.date.slice(0, 10)}, on ${machine.cpus} cores and ${Math.round(machine.memoryMB / 1024)} GB,`,
    `shared by everything, Node ${machine.node.slice(1)}: ${seconds(results.lastedMs)}, ${episodes.alone} faults alone, ${episodes.together} times several together.`,
    '',
    '| requests | acknowledged | events | messages | lost | unexpected | duplicated | recovered | promises broken |',
    '|---:|---:|---:|---:|---:|---:|---:|---:|---:|',
    `| ${[counts.requests, counts.acknowledged, counts.events, counts.messages, counts.lost, counts.unexpected, counts.duplicated, counts.recovered, violations.length].join(' | ')} |`,
    '',
    ...results.skipped.map((line) => `${line}.\n`),
    '| fault | what a sender saw | what a subscriber saw | time to heal |',
    '|---|---|---|---|',
    ...results.effects.filter(({ fault }) => fault !== TOGETHER).map(row),
    ...results.effects.filter(({ fault }) => fault === TOGETHER).map(row),
  ];
}

function row(effect: Effect): string {
  const { fault, strikes, lastedMs, sender, subscriber, heal } = effect;
  const what =
    [MIGRATION, ...FAULTS].find(({ name }) => name === fault)?.what ?? 'two or three faults that overlap';
  const saw = Object.entries(sender.saw)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([status, count]) => `${count} × ${status}`)
    .join(', ');
  const cells = [
    `**${fault}** (${strikes} ×, up to ${seconds(lastedMs)}): ${what}`,
    `${saw}; ${sender.retries} retries; slowest ${seconds(sender.slowestMs)}; no 2xx for ${seconds(sender.longestGapMs)}`,
    `silence of ${seconds(subscriber.longestSilenceMs)}, ${subscriber.copies} copies`,
    `first 2xx ${seconds(heal.firstSuccessMs)}, outbox ${seconds(heal.outboxMs)}`,
  ];
  return `| ${cells.join(' | ')} |`;
}
