// The verb `groups`: how much there is in the outbox or in quarantine, by what it has in common.

import { oneOf, parse } from '../../../terminal/arguments.ts';
import type { Verb } from '../../../terminal/command.ts';
import type { Io } from '../../../terminal/io.ts';
import { printTable } from '../../../terminal/listing.ts';
import { option, optionHelp } from '../../../terminal/options.ts';
import { count, NOTHING } from '../../../terminal/readable.ts';
import type { Column } from '../../../terminal/table.ts';
import { type Answers, outboxGroupFilters, quarantineGroupFilters } from '../../client/index.ts';
import { NO_ATTEMPT_FAILED } from '../../groups/contract.ts';
import { openApi } from '../api.command.ts';
import { filterHelp, filterOptions, orOf, readFilters } from '../list/filters.command.ts';
import { colourOf, numberColumn, timeColumn } from '../list/looks.command.ts';

type Found = Answers['quarantineGroups'] | Answers['outboxGroups'];
/** The quarantine's have no state. */
type Group = Answers['quarantineGroups']['items'][number] & {
  readonly state?: string;
  readonly copies?: boolean;
};

const { by: byOfOutbox, ...ofOutbox } = outboxGroupFilters;
const { by: byOfQuarantine, ...ofQuarantine } = quarantineGroupFilters;
const FILTERS = { outbox: ofOutbox, quarantine: ofQuarantine } as const;
const BY = { outbox: byOfOutbox.unwrap().options, quarantine: byOfQuarantine.unwrap().options } as const;

const optionsOf = (noun: keyof typeof BY) => ({ by: option('WHAT', `${orOf(BY[noun])} (reason)`) });

export const groupsHelp = (noun: keyof typeof BY): string =>
  `${optionHelp(optionsOf(noun))}\n${filterHelp(FILTERS[noun])}`;

export const groupsVerb =
  (noun: keyof typeof BY): Verb =>
  async (args, env, io) => {
    const { values } = parse(args, { ...filterOptions(FILTERS[noun]), ...optionsOf(noun) });
    const by = oneOf('--by', values.by, 'reason', BY[noun]);
    const query = { by, ...readFilters(FILTERS[noun], values) };
    const { client } = openApi(env, io);
    const found = await (noun === 'outbox' ? client.outboxGroups(query) : client.quarantineGroups(query));
    await print(io, found, by);
    return 0;
  };

async function print(io: Io, { items, has_more: hasMore, complete }: Found, by: string): Promise<void> {
  const groups: readonly Group[] = items;
  if (groups.length === 0)
    io.complain(complete ? 'nothing matches' : 'nothing of what was looked at matches');
  else if (io.stdout.isTTY) await printTable(io, groups, groupColumns(by));
  else for (const item of groups) await io.putJson(item);
  if (hasMore) io.complain('there are more groups; these are the largest');
  if (!complete) io.complain('only the oldest ones were looked at: there may be more groups');
}

export const groupColumns = (by: string): readonly Column<Group>[] => [
  { head: 'state', text: ({ state }) => state, colour: ({ state }) => colourOf(state ?? '') },
  {
    head: by,
    text: ({ value, state }) =>
      value ?? (by === 'reason' && state !== undefined ? NO_ATTEMPT_FAILED : NOTHING),
    wrapTo: 24,
  },
  numberColumn('how many', (group) => `${count(group.count)}${group.count_is_exact ? '' : '+'}`),
  { head: '', text: ({ copies }) => (copies === true ? 'copies of replays' : ''), colour: () => 'dim' },
  timeColumn('oldest (UTC)', (group) => group.oldest_at),
  { ...timeColumn('newest (UTC)', (group) => group.newest_at), drop: true },
];
