// The section on the soak in docs/reliability.md: what was run, what grew, and the counts at the end. Pure: made from the
// record and its verdict. It is between two markers; the text around them stays.

import { short } from '../../bench/plots.ts';
import type { Sample, SoakRecord } from './record.ts';
import { isQuiet, type Judgement, settleTimeS, type Verdict } from './verdict.ts';
import { median } from './statistics.ts';

const HEADING = "## An hour's soak";
const BEGIN = '<!-- soak:begin: written by npm run soak -- --write-docs -->';
const END = '<!-- soak:end -->';

const PLOTS = [
  ['soak-memory.svg', 'memory of the replicas'],
  ['soak-handles.svg', 'open descriptors and connections'],
  ['soak-outbox.svg', 'entries in the outbox'],
  ['soak-tables.svg', 'sizes of the tables'],
  ['soak-bytes-per-event.svg', 'sizes of the ledger by event'],
  ['soak-dead-rows.svg', 'dead rows'],
  ['soak-rates.svg', 'rates'],
  ['soak-latency.svg', 'time to the answer'],
] as const;

/** Puts the section between its markers, else under its heading, else at the end. */
export function withSection(page: string, section: string): string {
  const text = `${BEGIN}\n${section.trim()}\n${END}`;
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from >= 0 && to > from) return page.slice(0, from) + text + page.slice(to + END.length);
  const heading = page.indexOf(`${HEADING}\n`);
  if (heading < 0) return `${page.trimEnd()}\n\n${HEADING}\n\n${text}\n`;
  const start = heading + HEADING.length + 1;
  const next = page.indexOf('\n## ', start);
  return `${page.slice(0, start)}\n${text}\n${next < 0 ? '' : page.slice(next)}`;
}

export function sectionOf(record: SoakRecord, verdict: Verdict): string {
  return [
    introduction(record),
    answers(record),
    ...(verdict.checks.length > 0 ? [checks(verdict)] : ['The run did not reach its end.']),
    growth(record, verdict),
    faults(record),
    PLOTS.map(([file, what]) => `![${what}](plots/${file})`).join('\n\n'),
  ].join('\n\n');
}

function introduction({ start, faults: struck, samples }: SoakRecord): string {
  const versions = Object.entries(start.versions).map(([name, version]) => `${name} ${version}`);
  const minutes = Math.round((samples.at(-1)?.atS ?? 0) / 60);
  return [
    `\`${start.command}\` ran for ${minutes} minutes on ${start.at.slice(0, 10)}: two replicas, ${thousands(start.ratePerS)} deliveries a`,
    `second at fixed times, and ${struck.length} faults, one every ${start.faultEveryS} s, each for 5 to 20 s. The plots show them as bands.`,
    `${start.machine}, shared by all parts and the load; ${versions.join(', ')}.`,
    '',
    'Of 1,000 deliveries 978 are new events, 20 are copies of earlier ones, one has an unknown status and one a wrong',
    'signature. A delivery without a 2xx is sent again after 0.5 s; the pause doubles up to 16 s. Faults that end a replica',
    'strike only the second one: the first shows what grows in a process that keeps running.',
  ].join('\n');
}

function answers({ samples, faults: struck, start }: SoakRecord): string {
  const last = samples.findLast(({ sender }) => sender !== null)?.sender;
  const counts = Object.entries(last?.answers ?? {}).toSorted((a, b) => b[1] - a[1]);
  const settleS = settleTimeS(start.faultEveryS);
  const quiet = samples.filter(
    ({ atS, sender }) => sender !== null && atS > 0 && isQuiet(atS, struck, settleS),
  );
  const typical = (of: (sample: Sample) => number | undefined) =>
    median(quiet.flatMap((sample) => of(sample) ?? []));
  const p99 = typical(({ sender }) => sender?.p99Ms);
  const p50 = typical(({ sender }) => sender?.p50Ms);
  return [
    `Answers: ${counts.map(([status, count]) => `${thousands(count)} × ${status}`).join(', ')}. Without a fault, the`,
    `median of the ten-second p50 is ${short(p50)} ms and of the p99 ${short(p99)} ms, counted from the time when a delivery was due.`,
  ].join('\n');
}

function checks({ checks: all }: Verdict): string {
  return table(
    ['at the end', 'count', ''],
    all.map(({ what, value, passed }) => [
      what,
      thousands(value),
      passed ? 'as promised' : '**not as promised**',
    ]),
  );
}

function growth({ start }: SoakRecord, { judgements }: Verdict): string {
  return [
    `Growth is judged on the second half, on samples at least ${settleTimeS(start.faultEveryS)} s after a fault was healed. The rise is the`,
    'median slope between all pairs of samples, times the length of that half. More than a tenth of the level is growth. The',
    'ledger grows by design: there the bytes for each event must stay the same, and the share of dead rows must stay within',
    'what autovacuum allows. The outbox and its dead rows may be as large as its deepest backlog and two minutes of intake.',
    '',
    table(
      ['', 'level', 'rise', 'allowed rise', 'verdict'],
      judgements.map((judgement) => [
        judgement.what,
        withUnit(judgement, judgement.level),
        withUnit(judgement, judgement.rise),
        allowance(judgement),
        judgement.verdict === 'bounded' ? 'bounded' : `**${judgement.verdict}**`,
      ]),
    ),
  ].join('\n');
}

function faults({ faults: struck }: SoakRecord): string {
  if (struck.length === 0) return 'No fault struck.';
  const list = struck.map(
    ({ name, fromS, toS }) => `${name} (${clock(fromS)}, ${Math.round(toS - fromS)} s)`,
  );
  return `Faults, with their start and their time until they were healed: ${list.join(', ')}.`;
}

const toLine = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [toLine(head), `|${'---|'.repeat(head.length)}`, ...rows.map(toLine)].join('\n');
}

function withUnit({ unit }: Judgement, value: number): string {
  const number = Number.isFinite(value) ? short(value) : '–';
  return `${number} ${unit}`.trim();
}

function allowance(judgement: Judgement): string {
  const { allowed, explained } = judgement;
  const rise = withUnit(judgement, allowed);
  return explained === undefined ? rise : `${rise}, or ${withUnit(judgement, explained)} in all`;
}

function clock(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;
}

function thousands(value: number): string {
  return Number.isFinite(value) ? value.toLocaleString('en-US') : '–';
}
