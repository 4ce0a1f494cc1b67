// An order about many things at once: it shows what it is about and asks, before it acts. What came after the preview is left
// alone, since nobody was asked about it.

import { confirm } from '../../../terminal/ask.ts';
import { createBar } from '../../../terminal/bar.ts';
import { type Io, toJson } from '../../../terminal/io.ts';
import { count, counted, orMore } from '../../../terminal/readable.ts';
import { type Column, renderTable, terminalWidth } from '../../../terminal/table.ts';

type Preview<Item> = {
  readonly matched: number;
  readonly matched_exactly: boolean;
  readonly sample: readonly Item[];
};

export type Trial = {
  /** How many can be dealt with, and why the others cannot. */
  readonly text: string;
  /** None of all can be. */
  readonly isFruitless: boolean;
  /** `5 of `, where it is not all of them. */
  readonly part?: string;
};

export type Order<Found> = {
  /** The dry run. */
  readonly find: () => Promise<Found>;
  /** Of one of them. */
  readonly noun: string;
  /** What it says if nothing matches, and the exit code then. */
  readonly none: { readonly text: string; readonly exitCode: number };
  /** `amount`: `12 deliveries`. */
  readonly question: (amount: string) => string;
  /** Past tense: `discarded`. */
  readonly past: string;
  /** Where the preview tries: what came of it. */
  readonly trial?: (found: Found) => Trial | undefined;
  /** Does it, and tells what was done. @returns the exit code */
  readonly carryOut: (found: Found) => Promise<number>;
};

type Given = { readonly 'dry-run'?: boolean | undefined; readonly yes?: boolean | undefined };

/** That there is somebody to ask is checked before. @returns the exit code: 1 if the answer is no */
export async function runOrder<Item, Found extends Preview<Item>>(
  io: Io,
  given: Given,
  columns: readonly Column<Item>[],
  order: Order<Found>,
): Promise<number> {
  const found = await order.find();
  const trial = found.matched === 0 ? undefined : order.trial?.(found);
  const text = () => [describe(io, found, columns, order), trial?.text].filter(Boolean).join('\n');
  if (given['dry-run'] === true) {
    await io.put(`${io.stdout.isTTY ? text() : toJson(found)}\n`);
    return 0;
  }
  io.complain(text());
  if (found.matched === 0 && found.matched_exactly) return order.none.exitCode;
  if (trial?.isFruitless === true) return 1;
  const amount = `${trial?.part ?? ''}${amountOf(found, order.noun)}`;
  if (given.yes !== true && !(await confirm(io, order.question(amount)))) {
    io.complain(`nothing was ${order.past}`);
    return 1;
  }
  return order.carryOut(found);
}

const amountOf = ({ matched, matched_exactly: isExact }: Preview<unknown>, noun: string) =>
  orMore(counted(matched, noun), isExact);

function describe<Item>(
  io: Io,
  found: Preview<Item>,
  columns: readonly Column<Item>[],
  { noun, none }: Pick<Order<unknown>, 'noun' | 'none'>,
): string {
  if (found.sample.length === 0) return none.text;
  const rest = found.matched - found.sample.length;
  const table = renderTable(found.sample, columns, { width: terminalWidth(io), paint: io.paint });
  const more = rest > 0 ? `\n… and ${count(rest)} more` : '';
  return `${amountOf(found, noun)}, the oldest first:\n\n${table}${more}\n`;
}

/** Goes through the pages with a bar. `take` deals with a page. @returns the sum of what `take` returns */
export async function takePages<Page>(
  io: Io,
  pages: AsyncIterable<Page>,
  {
    unit,
    total,
    take,
  }: { unit: string; total?: number | undefined; take: (page: Page) => Promise<number> | number },
): Promise<number> {
  const bar = createBar(io, { unit, ...(total !== undefined && { total }) });
  let done = 0;
  try {
    for await (const page of pages) {
      done += await take(page);
      bar.update(done);
    }
  } finally {
    bar.stop();
  }
  return done;
}

/** For the bar; undefined if it is not known. */
export const totalOf = ({ matched, matched_exactly: isExact }: Preview<unknown>): number | undefined =>
  isExact ? matched : undefined;
