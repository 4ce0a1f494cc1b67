// The results of the benchmark of the operators' side, and their table in docs/operators.md.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../scripts/relay.ts';
import type { AuditCase } from './audit-cases.ts';
import { PAGE_P95_MAX_MS, type PageTimes } from './audit-pages.ts';

export type AuditScale = {
  readonly deliveries: number;
  /** Number of requests of each case, after a warm-up. */
  readonly asked: number;
  readonly rounds: number;
  readonly loadS: number;
};

export type AuditReport = {
  readonly scale: AuditScale;
  readonly lists: readonly (AuditCase & { readonly firstMs: number; readonly deepMs: number | undefined })[];
  readonly storyMs: number;
  readonly pages: readonly PageTimes[];
  readonly exports: readonly {
    readonly format: string;
    readonly items: number;
    readonly seconds: number;
    readonly mib: number;
  }[];
  /** Memory of the service's process: before the first export, and the peak during exports. */
  readonly idleMiB: number;
  readonly peakMiB: number;
  /** Median of acknowledged deliveries a second: alone, while operators ask, and during an export. */
  readonly intake: Readonly<Record<'alone' | 'asked' | 'exporting', number>>;
};

const ms = (value: number) => (value < 9.95 ? value.toFixed(1) : value.toFixed(0));
const count = (value: number) => Math.round(value).toLocaleString('en');

export function renderAudit({
  scale,
  lists,
  storyMs,
  pages,
  exports,
  idleMiB,
  peakMiB,
  intake,
}: AuditReport): string {
  const rows = lists.map(({ list, query, note, firstMs, deepMs }) => {
    const filters = Object.entries(query).map(([name, value]) => `${name}=${value}`);
    return `| \`${list}\` | ${filters.length === 0 ? '–' : `\`${filters.join('&')}\``} | ${note} | ${ms(firstMs)} | ${
      deepMs === undefined ? '–' : ms(deepMs)
    } |`;
  });
  const share = (rate: number) => `${Math.round((rate / intake.alone) * 100)} %`;
  return [
    `Medians of ${scale.asked} requests each over HTTP, 50 items a page, on ${count(scale.deliveries)} deliveries of 30`,
    'days with their events, jobs and publications; `npm run bench -- --audit` measures it again.',
    '',
    '| list | filter | matching rows | page 1, ms | page 1,000, ms |',
    '|---|---|---|---:|---:|',
    ...rows,
    `| a job’s story | | | ${ms(storyMs)} | |`,
    '',
    `The pages of the console on the same ledger, ${scale.asked} requests each; none may take more than ${PAGE_P95_MAX_MS} ms at the 95th`,
    'percentile:',
    '',
    '| page | median, ms | 95th percentile, ms | |',
    '|---|---:|---:|---|',
    ...pages.map(
      ({ page, medianMs, p95Ms }) =>
        `| \`${page}\` | ${ms(medianMs)} | ${ms(p95Ms)} | ${p95Ms <= PAGE_P95_MAX_MS ? 'met' : 'missed'} |`,
    ),
    '',
    ...exports.map(
      ({ format, items, seconds, mib }) =>
        `- An export of ${count(items)} deliveries as ${format.toUpperCase()}: ${count(items / seconds)} a second, ${count(mib)} MiB.`,
    ),
    `- The service’s memory (RSS) during an export: ${count(peakMiB)} MiB at most, ${count(idleMiB)} MiB before.`,
    `- The intake at the same time: ${count(intake.alone)} deliveries a second alone, ${share(intake.asked)} of that while two`,
    `  operators sent requests without a pause, ${share(intake.exporting)} during an export (one process, broker stopped).`,
  ].join('\n');
}

const DOCUMENT = join(ROOT, 'docs/operators.md');
const SECTION = /<!-- medians -->[\s\S]*?<!-- \/medians -->/;

/** Writes it between the document's markers. @throws Error if these are missing */
export function writeMedians(text: string): void {
  const before = readFileSync(DOCUMENT, 'utf8');
  if (!SECTION.test(before)) throw new Error('docs/operators.md has no place for the medians');
  writeFileSync(
    DOCUMENT,
    before.replace(SECTION, () => `<!-- medians -->\n${text}\n<!-- /medians -->`),
  );
}
