import { expect, test } from 'vitest';
import type { Entry } from '../../../src/relay/entry.ts';
import { createSuspects } from '../../../src/relay/suspects.ts';
import { createWindow } from '../../../src/relay/window.ts';
import { newEntry } from '../../support/entries.ts';

const entry = (jobId: string, position: number): Entry => newEntry(position, { jobId });

function stage(...entries: Entry[]) {
  const window = createWindow();
  for (const each of entries) window.admit(each);
  const suspects = createSuspects(window);
  return { suspects, take: (inFlight: number) => suspects.take(inFlight)?.entries[0] };
}

test('suspects are published alone, before all else', () => {
  const [a, b, c] = [entry('a', 1), entry('b', 2), entry('c', 3)];
  const { suspects, take } = stage(a, b, c);
  suspects.add(b);
  suspects.add(c);

  expect(take(1)).toBeUndefined();
  expect(take(0)).toBe(b);
  suspects.delete(b);
  expect(take(1)).toBeUndefined();
  expect(take(0)).toBe(c);
  suspects.delete(c);
  expect(take(1)).toBe(a);
});

test('a suspect that was forgotten is waited for until a load has looked for it', () => {
  const a = entry('a', 1);
  const { suspects, take } = stage(a);
  suspects.add(entry('b', 2));
  suspects.onForgotten();

  expect(take(0)).toBeUndefined();
  suspects.onLoaded();
  expect(take(0)).toBe(a);
});
