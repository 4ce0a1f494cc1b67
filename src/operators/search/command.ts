// `tallyhook find`: from something that an operator has in hand to the command that shows it.

import type { Env } from '../../config.ts';
import { argumentOf, parse } from '../../terminal/arguments.ts';
import type { Command } from '../../terminal/command.ts';
import type { Io } from '../../terminal/io.ts';
import { printTable } from '../../terminal/listing.ts';
import { clean, counted, time } from '../../terminal/readable.ts';
import { tallyhookLine } from '../../terminal/shell-line.ts';
import type { Column } from '../../terminal/table.ts';
import type { Answers } from '../client/index.ts';
import { openApi } from '../kernel/api.command.ts';
import { colourOf, timeColumn } from '../kernel/list/looks.command.ts';

const help = `Leads from an id, an error code or a source to what shows it.

  find TEXT             the id of a job, an event, a delivery or a replay; an error code; the name of a source; or what
                        a job's id begins with, or of newer jobs any part of it

Each line has the command that shows what was found. At most 25 of a kind are listed. TEXT that begins with "-" needs
"--" before it. The exit code is 1 if nothing was found.`;

export type Found = Answers['search']['items'][number];

async function run(args: string[], env: Env, io: Io): Promise<number> {
  const text = argumentOf(parse(args, {}, 1).positionals, 'what to look for');
  const { items, more_of: moreOf, looked_through: looked } = await openApi(env, io).client.search(text);
  if (!io.stdout.isTTY) {
    for (const item of items) await io.putJson({ ...item, command: commandOf(item) });
  } else if (items.length > 0) {
    await printTable(io, items, FOUND);
  }
  if (items.length === 0) io.complain('nothing has this id, code or name, and no job begins with it');
  if (looked) io.complain(howFar(looked));
  if (moreOf.includes('job_prefix')) {
    io.complain(
      `there are more jobs: see "${clean(tallyhookLine('jobs list', [], { 'job-prefix': text }))}"`,
    );
  }
  return items.length === 0 ? 1 : 0;
}

/** Of the text inside of ids. */
function howFar({ jobs, back_to: at }: NonNullable<Answers['search']['looked_through']>): string {
  if (at === null) return `searched every job’s id (${counted(jobs, 'job')})`;
  return `searched the ids of the newest ${counted(jobs, 'job')}, back to ${time(at)}; for older ones, give the beginning of the id`;
}

export const FOUND: readonly Column<Found>[] = [
  { head: 'what', text: (item) => WORDS[item.what] ?? item.what },
  { head: 'state', text: (item) => item.state ?? '', colour: (item) => colourOf(item.state ?? '') },
  timeColumn('at (UTC)', (item) => item.at),
  // It has the source and the id in it.
  { head: 'shown by', text: commandOf, wrapTo: 72, below: 'first', unlabelled: true },
];

const WORDS: Readonly<Record<string, string>> = {
  error_code: 'error code',
  job_prefix: 'job',
  job_part: 'job',
};

function commandOf({ what, id, source }: Found): string {
  switch (what) {
    case 'event':
      return tallyhookLine('events show', [id]);
    case 'delivery':
      return tallyhookLine('deliveries show', [id]);
    case 'replay':
      return tallyhookLine('replays show', [id]);
    case 'error_code':
      return tallyhookLine('events list', [], { 'error-code': id });
    case 'source':
      return tallyhookLine('deliveries list', [], { source: id });
    default:
      return tallyhookLine('jobs show', source === null ? [id] : [source, id]);
  }
}

export const find: Command = { help, run };
