// Reads a list to its end, page by page. Between two pages, however long the reader takes, no transaction is open and no
// connection in use; one page at most is in memory.

import { setImmediate as turn } from 'node:timers/promises';
import type { Position } from '../kernel/list/cursor.ts';
import type { Page, PageOptions } from '../kernel/list/list.queries.ts';

/** Some 10 ms of the database's time and half a MiB. */
const PAGE_ITEMS = 1_000;
/** Items between two turns of the event loop: some 2 ms. */
const SLICE_ITEMS = 100;

/** Each item of the list once, in its order, in slices. Ends with an error where a page cannot be read. */
export async function* readAll<Item>(
  read: (options: PageOptions) => Promise<Page<Item>>,
): AsyncGenerator<readonly Item[]> {
  let after: Position | null = null;
  do {
    const { items, next }: Page<Item> = await read({ after, limit: PAGE_ITEMS });
    for (let from = 0; from < items.length; from += SLICE_ITEMS) {
      yield items.slice(from, from + SLICE_ITEMS);
      await turn();
    }
    after = next;
  } while (after !== null);
}
