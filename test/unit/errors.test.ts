import { expect, test } from 'vitest';
import {
  ConfigError,
  DayKeptError,
  describeError,
  SchemaError,
  UnavailableError,
} from '../../src/base/errors.ts';
import { createLog } from '../../src/base/log/log.ts';

test('each error has a literal name and a stable code', () => {
  expect(new ConfigError(['PORT must be set'])).toMatchObject({
    name: 'ConfigError',
    code: 'config_invalid',
  });
  expect(new SchemaError('schema_newer', '')).toMatchObject({ name: 'SchemaError', code: 'schema_newer' });
  expect(new UnavailableError('full', '')).toMatchObject({ name: 'UnavailableError', code: 'full' });
  expect(new DayKeptError('', '')).toMatchObject({ name: 'DayKeptError', code: 'day_kept' });
});

test('a ConfigError lists every fault on a line of its own', () => {
  const error = new ConfigError(['PORT must be a whole number', 'AMQP_URL must be set']);

  expect(error.message).toBe(
    'the configuration has 2 fault(s):\n  - PORT must be a whole number\n  - AMQP_URL must be set',
  );
  expect(error.faults).toHaveLength(2);
});

test('the description of a database error holds no detail, parameter, client or query', () => {
  const error = Object.assign(new Error('deadlock detected'), {
    code: '40P01',
    detail: 'planted-detail',
    where: 'planted-where',
    hint: 'planted-hint',
    client: { password: 'planted-password' },
    parameters: ['planted-parameter'],
    query: 'planted-query',
  });

  expect(describeError(error)).toEqual({ name: 'Error', code: '40P01', message: 'deadlock detected' });
});

test.for(['22007', '22P02', '23505', '23514'])(
  'a message of class %s quotes values, so it is left out',
  (code) => {
    const error = Object.assign(new Error('invalid input syntax: "planted-value"'), { code });

    expect(describeError(error)).toEqual({ name: 'Error', code, message: 'the database refused a value' });
  },
);

test('the description of an error has no stack and no cause', () => {
  const error = new Error('outer', { cause: new Error('planted-cause') });

  expect(JSON.stringify(describeError(error))).toBe('{"name":"Error","message":"outer"}');
});

test('an AggregateError without a message of its own is described by its first error', () => {
  const error = new AggregateError([new Error('connect ECONNREFUSED 127.0.0.1:1'), new Error('second')]);

  expect(describeError(error).message).toBe('connect ECONNREFUSED 127.0.0.1:1');
});

test('what is no error is named by its type and not shown', () => {
  for (const thrown of ['planted-text', 7, null, undefined, { secret: 'planted' }]) {
    const description = describeError(thrown);
    expect(description.name).toBe('Unknown');
    expect(JSON.stringify(description)).not.toContain('planted');
  }
});

test('a code that is neither text nor number is left out', () => {
  const error = Object.assign(new Error('odd'), { code: { planted: true } });

  expect(describeError(error)).toEqual({ name: 'Error', message: 'odd' });
});

test('a line of the log has of an error what its description has, and no more', () => {
  const lines: string[] = [];
  const output = {
    write: (line: string) => lines.push(line),
    flushSync: () => {},
    flush: (done: () => void) => done(),
    dropped: () => 0,
    onResumed: () => {},
  };
  const err = describeError(new UnavailableError('full', 'too many wait'));

  createLog({ level: 'info', pretty: false, output }).warn({ err }, 'refused');

  expect(JSON.parse(lines.join(''))).toMatchObject({ msg: 'refused' });
  expect(JSON.parse(lines.join('')).err).toStrictEqual(err);
});
