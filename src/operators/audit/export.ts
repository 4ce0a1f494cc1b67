// Reads a list to its end, page by page: no transaction is open and no connection held between two pages, however long
// the reader takes, and no more than a page is in memory.

import { setImmediate as turn } from 'node:timers/promises';
import type { Kysely } from 'kysely';
import type { Database } from '../../ledger/index.ts';
import type { Position } from './cursor.ts';
import type { List } from './lists.ts';

/** Some 10 ms of the database's time and half a MiB. */
const PAGE_ITEMS = 1_000;
/** So many are handed on at once, and other work has its turn: some 2 ms. */
const SLICE_ITEMS = 100;

/** Each item of the list once, in its order, in slices. Ends with an error where a page cannot be read. */
export async function* readAll<Filters, Item>(
  db: Kysely<Database>,
  list: Pick<List<Filters, Item>, 'read'>,
  filters: Filters,
): AsyncGenerator<readonly Item[]> {
  let after: Position | null = null;
  do {
    const { items, next }: Awaited<ReturnType<typeof list.read>> = await list.read(db, filters, {
      after,
      limit: PAGE_ITEMS,
    });
    for (let from = 0; from < items.length; from += SLICE_ITEMS) {
      yield items.slice(from, from + SLICE_ITEMS);
      await turn();
    }
    after = next;
  } while (after !== null);
}
