// The columns of each list in a terminal: those of its contract, and what is special to a few of them here.

import type { Column } from '../../../terminal/table.ts';
import { columnsFor, type Items, LISTS, type ListColumns, type ListName } from '../../client/index.ts';
import { terminalColumn } from './looks.command.ts';

type Own<N extends ListName> = {
  readonly [K in keyof (typeof LISTS)[N]['columns']]?: Partial<Column<Items[N]>>;
};

const deliveries = {
  status: { wrapTo: 10, below: undefined }, // of a sender's choice, if it is no status that we know
  error_code: { wrapTo: 16 },
  // Of a delivery with a job, the source tells who sent it.
  remote_address: {
    brief: (item) => (item.job_id === null ? item.remote_address : ''),
    below: 'last',
  },
} as const satisfies Own<'deliveries'>;

const OWN: { readonly [N in ListName]?: Own<N> } = {
  deliveries,
  quarantine: { ...deliveries, released_at: { below: 'first' }, discarded_at: { below: 'first' } },
  events: { error_code: { wrapTo: 16 } },
  outbox: { id: { colour: () => 'dim' } },
};

function columnsOf<N extends ListName>(name: N): readonly Column<Items[N]>[] {
  const own: Readonly<Record<string, Partial<Column<Items[N]>> | undefined>> = OWN[name] ?? {};
  // An item may be of a newer service, with words that this one does not know: each look takes any.
  const columns = LISTS[name].columns as unknown as ListColumns<Items[N]>;
  return columnsFor(columns, 'terminals').map(([key, column]) => terminalColumn(column, own[key]));
}

export const COLUMNS = Object.fromEntries(
  (Object.keys(LISTS) as ListName[]).map((name) => [name, columnsOf(name)]),
) as { readonly [N in ListName]: readonly Column<Items[N]>[] };
