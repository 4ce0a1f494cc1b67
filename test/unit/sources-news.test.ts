// What `npm start` tells of the relay's log, and how it reads that.

import { appendFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { createLineReader } from '../../scripts/log-lines.ts';
import { newsIn } from '../../scripts/sources-news.ts';
import { createFolder } from '../support/folder.ts';

test('sources that were read again, and a file that is broken, are news; nothing else is', () => {
  expect(newsIn('{"level":"info","sources":["default","mine"],"msg":"sources loaded"}')).toEqual({
    isLoaded: true,
    text: 'sources loaded: default, mine',
  });
  const broken = 'SOURCES_FILE is broken, the previous sources stay valid';
  const faults = ['SOURCES_FILE is not JSON', 'another one'];
  expect(newsIn(JSON.stringify({ level: 'error', faults, msg: broken }))).toEqual({
    isLoaded: false,
    text: `${broken}: SOURCES_FILE is not JSON; another one`,
  });
  for (const line of [
    '{"msg":"listening"}',
    '{"msg":"refused","path":"/sources loaded"}',
    '{"msg":"the lease is broken"}',
    'INFO: sources loaded',
    '',
  ])
    expect(newsIn(line)).toBeUndefined();
});

test('a log is read line by line from a place in it, and each line once, when it is complete', async () => {
  await using folder = await createFolder();
  const file = await folder.write('log', 'of an earlier run\none\ntwo');
  const newLines = createLineReader(file, 'of an earlier run\n'.length);
  expect(newLines()).toEqual(['one']);
  expect(newLines()).toEqual([]);
  await appendFile(file, '…\n\nthree ü\n');
  expect(newLines()).toEqual(['two…', '', 'three ü']);
});
