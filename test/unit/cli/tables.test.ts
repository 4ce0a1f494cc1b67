// Every table of the command line at the widths of usual terminals. tables-80.txt and tables-120.txt are what they look like;
// after a change that is meant, `vitest run test/unit/cli/tables.test.ts --update` writes them again.

import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { COLUMNS } from '../../../src/operators/kernel/list/columns.command.ts';
import { DIFFERENCES } from '../../../src/operators/deliveries/difference.command.ts';
import { FOUND } from '../../../src/operators/search/command.ts';
import { groupColumns } from '../../../src/operators/kernel/group/group.command.ts';
import { FAILURE_COLUMNS } from '../../../src/operators/quarantine/command.ts';
import { NOT_YET } from '../../../src/operators/incidents/command.ts';
import { DESTINATIONS } from '../../../src/operators/destinations/command.ts';
import { REPLICAS } from '../../../src/operators/replicas/command.ts';
import { SKIP_COLUMNS } from '../../../src/operators/replays/command.ts';
import { shownTables, SIZES } from '../../../src/operators/sizes/command.ts';
import { DRIFT, REFUSED, SECRETS, SOURCES } from '../../../src/operators/sources/command.ts';
import {
  DELIVERIES,
  PUBLICATIONS,
  TOTAL,
  totalRows,
} from '../../../src/operators/statistics/columns.command.ts';
import { STORY_COLUMNS } from '../../../src/operators/jobs/story.command.ts';
import { type Column, layTable, renderTable } from '../../../src/terminal/table.ts';
import { widthOf } from '../../../src/terminal/text-width.ts';
import { TOKEN_COLUMNS } from '../../../src/operators/tokens/command.ts';
import * as rows from '../../support/table-rows.ts';

beforeAll(() => {
  vi.useFakeTimers({ now: Date.parse(rows.NOW), toFake: ['Date'] });
});
afterAll(() => {
  vi.useRealTimers();
});

const table =
  <T>(items: readonly T[], columns: readonly Column<T>[]) =>
  (width: number) =>
    stripVTControlCharacters(renderTable(items, columns, { width }));

const failures = rows.quarantined.map(({ id, reason }) => ({
  delivery_id: id,
  result: 'still_quarantined',
  event_id: null,
  reason,
}));

const TABLES = {
  'jobs list': table(rows.jobs, COLUMNS.jobs),
  'jobs show': table(rows.story, STORY_COLUMNS),
  'deliveries list': table(rows.deliveries, COLUMNS.deliveries),
  'deliveries list --outcome unauthorized': table(rows.unauthorized, COLUMNS.deliveries),
  'deliveries diff': table(rows.differences, DIFFERENCES),
  find: table(rows.found, FOUND),
  'events list': table(rows.events, COLUMNS.events),
  'publications list': table(rows.publications, COLUMNS.publications),
  'quarantine list': table(rows.quarantined, COLUMNS.quarantine),
  'quarantine list --state discarded': table(rows.discarded, COLUMNS.quarantine),
  'quarantine list, short': table(rows.quarantined.slice(0, 2), COLUMNS.quarantine),
  'quarantine release --all': table(failures, FAILURE_COLUMNS),
  'outbox list': table(rows.outbox, COLUMNS.outbox),
  'outbox returned': table(rows.outbox.slice(0, 1), COLUMNS.outbox),
  'outbox groups': table(rows.outboxGroups, groupColumns('reason')),
  'quarantine groups': table(rows.quarantineGroups, groupColumns('reason')),
  'alerts list': table(rows.incidents, COLUMNS.incidents),
  'alerts: not an incident yet': table(rows.conditions, NOT_YET),
  'replays list': table(rows.replays, COLUMNS.replays),
  'replays show': table(rows.skips, SKIP_COLUMNS),
  destinations: table(rows.destinations, DESTINATIONS),
  replicas: table(rows.replicas, REPLICAS),
  sizes: table(shownTables(rows.sizes), SIZES),
  log: table(rows.operatorLog, COLUMNS['operator-log']),
  sources: table(rows.sources, SOURCES),
  'sources: secrets': table(rows.secrets, SECRETS),
  'sources: drift': table(rows.drift, DRIFT),
  'sources: drift of a source with a long name': table(rows.driftOfLongName, DRIFT),
  'sources: refused': table(rows.refused, REFUSED),
  'stats: deliveries': table(rows.stats, DELIVERIES),
  'stats: publications': table(rows.stats, PUBLICATIONS),
  'stats: total': table(totalRows(rows.total), TOTAL),
  'tokens list': table(rows.tokens, TOKEN_COLUMNS),
};

/** Without white space, since text may continue in the next line. */
const squeezed = (text: string) => text.replaceAll(/\s/g, '');

describe.for([80, 120])('in %d columns', (width) => {
  test('every table looks as in its file', async () => {
    const shown = Object.entries(TABLES).map(([name, render]) => `# ${name}\n${render(width)}\n`);
    await expect(shown.join('\n')).toMatchFileSnapshot(`tables-${width}.txt`);
  });

  test.for(Object.keys(TABLES) as (keyof typeof TABLES)[])('no line of "%s" is longer', (name) => {
    for (const line of TABLES[name](width).split('\n')) expect(widthOf(line)).toBeLessThanOrEqual(width);
  });

  test('no outcome, status, result, percentage or reason is cut', () => {
    const list = squeezed(TABLES['deliveries list'](width));
    const texts = rows.deliveries.flatMap(({ outcome, status, reason, error_code }) => [
      outcome,
      reason ?? '',
      error_code ?? '',
      ...(status ?? '').split(' '),
    ]);
    for (const text of texts) expect(list).toContain(squeezed(text));
    expect(list).toContain('45%');
    for (const text of ['confirmed', 'returned', 'failed']) {
      expect(TABLES['publications list'](width)).toMatch(new RegExp(`\\b${text}\\b`));
    }
    for (const text of ['completed', 'processing', 'failed', '50 %', '30 %']) {
      expect(TABLES['jobs list'](width)).toContain(text);
    }
    expect(squeezed(TABLES['jobs show'](width))).toContain(squeezed('the input file cannot be read'));
    expect(squeezed(TABLES['outbox list'](width))).toContain(squeezed('the connection was closed'));
    expect(squeezed(TABLES['stats: total'](width))).toContain(squeezed('100,001 unauthorized'));
  });

  test('an id of a job that has room is whole, and so is that of a delivery', () => {
    expect(TABLES['jobs list'](width)).toMatch(/\bjob_7f3a\b/);
    expect(TABLES['outbox returned'](width)).toMatch(/ team-a:job_c001:failed /);
    if (width < 120) return;
    expect(TABLES['quarantine list, short'](width)).toContain(rows.quarantined[0]?.id);
    expect(TABLES['deliveries list --outcome unauthorized'](width)).toContain(rows.unauthorized[0]?.id);
  });
});

test('a completed job shows no percentage of its last progress', () => {
  expect(TABLES['jobs list'](120)).not.toContain('17 %');
});

test('text of a sender with "…" in it is not taken for an id that is shortened', () => {
  const said = [{ ...rows.outbox[0], last_error: 'and so on…' }] as typeof rows.outbox;
  expect(layTable(said, COLUMNS.outbox, { width: 120 })).toMatchObject({ isShortened: false });
  expect(layTable(rows.outbox, COLUMNS.outbox, { width: 80 })).toMatchObject({ isShortened: true });
});

test('an error message that is cut says so, and where the rest is', () => {
  const failure = rows.story.find((item) => 'event' in item && item.event.kind === 'failed');
  if (failure === undefined || !('event' in failure)) throw new Error('a story has a failure');
  const shown = (message: string) => {
    const items = [{ ...failure, event: { ...failure.event, error_message: message } }];
    return renderTable(items, STORY_COLUMNS, { width: 2_000 });
  };
  const id = rows.events[0]?.delivery_id;
  expect(shown(`${'a'.repeat(999)}…`)).toContain(`…, cut: all of it is in "deliveries show ${id} --body"`);
  expect(shown('a…')).not.toContain('cut');
});

test('an event behind a parked one says what it waits for', () => {
  const waiting = rows.story.filter(({ what }) => what === 'waiting');
  expect(TABLES['jobs show'](120)).toContain('waits for failed, which is parked');
  expect(renderTable(waiting.slice(2), STORY_COLUMNS, { width: 120 })).toContain('due now');
});

test('where there is room, nothing is shortened', () => {
  const wide = Object.values(TABLES).map((render) => render(500));
  expect(wide.filter((text) => text.includes('…'))).toEqual([]);
  expect(TABLES['quarantine list'](500)).toContain(rows.LONG_JOB);
  expect(TABLES['quarantine list'](500)).toContain(rows.LONG_REASON);
});
