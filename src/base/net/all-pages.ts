// Reads a list that an API gives out page by page, each page with the cursor of the next.

import { InvalidAnswerError } from '../errors.ts';

/** `read` is asked for the next page when the one before has been taken. @throws InvalidAnswerError for an endless list */
export async function* pages<T extends { readonly next_cursor: string | null }>(
  read: (cursor: string | undefined) => Promise<T>,
): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined;
  for (;;) {
    const page = await read(cursor);
    yield page;
    if (page.next_cursor === null) return;
    if (page.next_cursor === cursor) throw new InvalidAnswerError('the list does not go on');
    cursor = page.next_cursor;
  }
}
