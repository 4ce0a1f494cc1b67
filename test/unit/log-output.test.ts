import { expect, test } from 'vitest';
import { createLog } from '../../src/base/log/log.ts';
import { createLogOutput } from '../../src/base/log/log-output.ts';

/** Takes each write at once and ends it when the test says so. */
function startReader() {
  const written: string[] = [];
  let done: ((error?: Error) => void) | undefined;
  return {
    written,
    writeText: (text: string, callback: (error?: Error) => void) => {
      written.push(text);
      done = callback;
    },
    reads: (error?: Error) => {
      const callback = done;
      done = undefined;
      callback?.(error);
    },
  };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('the lines of one turn go out together, and in order', async () => {
  const reader = startReader();
  const output = createLogOutput(reader.writeText);

  for (const line of ['a\n', 'b\n', 'c\n']) output.write(line);
  await turn();
  output.write('d\n');
  output.write('e\n');
  await turn();
  reader.reads();

  expect(reader.written).toEqual(['a\nb\nc\n', 'd\ne\n']);
});

test('while nobody reads, lines beyond the limit are dropped and counted, in bytes and not in characters', async () => {
  const reader = startReader();
  const output = createLogOutput(reader.writeText, 10);

  output.write('éé\n'); // five bytes, on their way
  await turn();
  output.write('éé\n'); // five that wait
  output.write('x');
  await turn();
  output.write('y');
  reader.reads();
  reader.reads();
  output.write('z');
  await turn();

  expect(reader.written).toEqual(['éé\n', 'éé\n', 'z']);
  expect(output.dropped()).toBe(2);
});

test('as soon as lines flow again one tells how many are missing, where they are', async () => {
  const reader = startReader();
  const output = createLogOutput(reader.writeText, 400);
  const log = createLog({ level: 'info', pretty: false, output });

  log.info('first');
  await turn();
  for (let i = 0; i < 100; i++) log.info('flood');
  const kept = 100 - output.dropped();
  reader.reads();
  reader.reads();
  log.info('after');
  await turn();

  const said = reader.written
    .join('')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { msg: string }).msg);
  expect(kept).toBeGreaterThan(0);
  expect(said).toEqual([
    'first',
    ...Array.from({ length: kept }, () => 'flood'),
    `${100 - kept} log lines dropped`,
    'after',
  ]);
});

test('lines that could not be written count as dropped, and the next ones are tried again', async () => {
  const reader = startReader();
  const output = createLogOutput(reader.writeText);
  const told: number[] = [];
  output.onResumed((dropped) => told.push(dropped));

  output.write('a\n');
  output.write('b\n');
  await turn();
  reader.reads(new Error('ENOSPC'));
  expect([output.dropped(), told]).toEqual([2, []]);
  output.write('c\n');
  await turn();
  reader.reads();

  expect(reader.written).toEqual(['a\nb\n', 'c\n']);
  expect([output.dropped(), told]).toEqual([2, [2]]);
});

test('a flush hands over at once what waits, and is done when it is out', () => {
  const reader = startReader();
  const output = createLogOutput(reader.writeText);
  let isOut = false;

  output.write('last words\n');
  output.flush(() => {
    isOut = true;
  });

  expect(reader.written).toEqual(['last words\n']);
  expect(isOut).toBe(false);
  reader.reads();
  expect(isOut).toBe(true);
});

test('a fatal line is handed over at once', () => {
  const reader = startReader();
  const log = createLog({ level: 'info', pretty: false, output: createLogOutput(reader.writeText) });

  log.info('before');
  log.fatal('a bug');

  expect(reader.written.join('')).toMatch(/"before".*\n.*"a bug"/);
});

test('readable lines pass the same limit', async () => {
  const reader = startReader();
  const output = createLogOutput(reader.writeText, 100);
  const log = createLog({ level: 'info', pretty: true, output });

  for (let i = 0; i < 10; i++) log.info('a line of some thirty characters');
  await turn();

  expect(reader.written.join('')).toMatch(/INFO.*: a line of some/);
  expect(output.dropped()).toBeGreaterThan(6);
});
