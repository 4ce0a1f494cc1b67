import { describe, expect, test } from 'vitest';
import { eventId, parseEventId } from '../../../src/event/index.ts';
import { listReasons, REASON_MAX_LENGTH } from '../../../src/event/index.ts';
import { completed, failed, type Notification, progress } from '../../support/sender.ts';
import { understood } from '../../support/records.ts';

const json = (content: unknown) => JSON.stringify(content);
/** The body with `member` (JSON text) added at the end. */
const withMember = (content: Notification, member: string) => `${json(content).slice(0, -1)},${member}}`;

function eventOf(body: string | Buffer) {
  const understanding = understood(body);
  if (understanding.outcome !== 'event') {
    throw new Error(`${understanding.outcome}: ${understanding.reason}`);
  }
  return understanding.event;
}
const withoutField = (content: Notification, field: string) => {
  const { [field]: _left, ...rest } = content;
  return json(rest);
};
const hash = (body: string) => eventOf(body).contentHash.toString('hex');
const cost = (text: string) => json(completed('job_1')).replace(':1250000', `:${text}`);
const deep = (levels: number, open: string, close: string) =>
  withMember(completed('job_1'), `"x":${open.repeat(levels)}1${close.repeat(levels)}`);
const normalized = (text: string) =>
  (dataOf(json(completed('job_1', { completed_at: text }))) as { completed_at: string }).completed_at;
const dataOf = (body: string) => JSON.parse(eventOf(body).data) as Record<string, unknown>;

describe('the three kinds', () => {
  test('a completed job is an event without progress in its key', () => {
    const content = completed('job_1');

    expect(eventOf(json(content))).toMatchObject({
      jobId: 'job_1',
      status: 'completed',
      progress: null,
      occurredAt: '2026-01-15T10:35:00Z',
      data: json(content),
    });
  });

  test('a failed job happened when it failed', () => {
    expect(eventOf(json(failed('job_1')))).toMatchObject({
      status: 'failed',
      progress: null,
      occurredAt: '2026-01-15T10:31:00Z',
      data: json(failed('job_1')),
    });
  });

  test('progress has its percentage in the key and does not say when it happened', () => {
    expect(eventOf(json(progress('job_1', 45)))).toMatchObject({
      status: 'processing',
      progress: 45,
      occurredAt: null,
      data: json(progress('job_1', 45)),
    });
  });

  test('progress without an estimate is still progress', () => {
    const content = { job_id: 'job_1', status: 'processing', progress_percentage: 0 };

    expect(eventOf(json(content))).toMatchObject({ progress: 0, data: json(content) });
  });

  test('estimated_completion is not null: it is there, or it is not', () => {
    expect(understood(json(progress('job_1', 45, { estimated_completion: null })))).toMatchObject({
      outcome: 'quarantined',
    });
  });
});

describe('what breaks the schema is quarantined', () => {
  test('each field of each kind is required, but for the estimate of progress', () => {
    const missing = [completed('job_1'), failed('job_1'), progress('job_1', 45)].flatMap((content) =>
      Object.keys(content)
        .filter((field) => !['job_id', 'status', 'estimated_completion'].includes(field))
        .map((field) => ({ field, understanding: understood(withoutField(content, field)) })),
    );

    expect(missing).toHaveLength(10 + 6 + 1);
    for (const { field, understanding } of missing) {
      expect(understanding).toMatchObject({ outcome: 'quarantined', jobId: 'job_1' });
      expect(understanding).toHaveProperty('reason', expect.stringContaining(field));
    }
  });

  test.for([
    ['progress_percentage', -1],
    ['progress_percentage', 101],
    ['progress_percentage', 45.5],
    ['progress_percentage', '45'],
    ['progress_percentage', null],
    ['progress_percentage', true],
    ['cost_micros', 0.5],
    ['cost_micros', '1250000'],
    ['cost_cents', null],
    ['output_size_bytes', [1]],
    ['job_type', 7],
    ['input_format', null],
    ['created_at', 1_768_473_000],
    ['created_at', ''],
  ] as const)('%s: %j', ([field, value]) => {
    expect(understood(json(completed('job_1', { [field]: value })))).toMatchObject({
      outcome: 'quarantined',
      jobId: 'job_1',
      status: 'completed',
      reason: expect.stringContaining(field),
    });
  });

  test('the reason names fields and quotes no value, and is bounded', () => {
    const understanding = understood(
      json(
        completed('job_1', {
          created_at: 'planted',
          cost_micros: 'planted',
          job_type: { planted: 'planted' },
          input_format: ['planted'],
        }),
      ),
    );

    expect(understanding).toHaveProperty('reason', expect.stringContaining('created_at'));
    expect(json(understanding)).not.toContain('planted');
    const all = understood('{"job_id":"job_1","status":"completed"}') as { reason: string };
    expect(all.reason.length).toBeLessThanOrEqual(300);
  });

  test.for([
    ['cost_micros', undefined, 'cost_micros is missing'],
    [
      'cost_micros',
      '1250000',
      'cost_micros must be a whole number from -9007199254740991 to 9007199254740991; it is a string',
    ],
    ['cost_micros', 0.5, 'cost_micros must be a whole number from -9007199254740991 to 9007199254740991'],
    ['progress_percentage', 101, 'progress_percentage must be a whole number from 0 to 100'],
    ['progress_percentage', null, 'progress_percentage must be a whole number from 0 to 100; it is null'],
    ['job_type', 7, 'job_type must be a string; it is a number'],
    ['input_format', { a: 1 }, 'input_format must be a string; it is an object'],
    [
      'created_at',
      'yesterday',
      'created_at must be a date and time with a time zone, as in 2026-01-31T12:00:00Z',
    ],
    ['created_at', '0000-01-01T00:00:00Z', 'created_at must be a date between the years 1 and 9999'],
  ] as const)('in plain words: %s as %j', ([field, value, reason]) => {
    expect(understood(json(completed('job_1', { [field]: value })))).toHaveProperty('reason', reason);
  });

  test('each field has one reason, in the order of the schema', () => {
    expect(
      understood('{"job_id":"job_1","status":"failed","job_type":1,"created_at":"2026"}'),
    ).toHaveProperty(
      'reason',
      'job_type must be a string; it is a number; progress_percentage is missing; error_message is missing; ' +
        'error_code is missing; created_at must be a date and time with a time zone, as in 2026-01-31T12:00:00Z; ' +
        'failed_at is missing',
    );
  });

  test('a list of reasons that is too long ends with a whole reason, and says how many more there are', () => {
    const reasons = Array.from({ length: 9 }, (_, index) => `${String(index).repeat(60)} is missing`);

    expect(listReasons(reasons)).toBe(`${reasons.slice(0, 3).join('; ')}; and 6 more`);
    expect(listReasons(reasons.slice(0, 2))).toBe(reasons.slice(0, 2).join('; '));
    expect(listReasons(['x'.repeat(400), 'y'])).toBe(`${'x'.repeat(400)}; and 1 more`);
    expect(listReasons(reasons).length).toBeLessThanOrEqual(REASON_MAX_LENGTH);
  });

  test.for([
    'queued',
    'Completed',
    'COMPLETED',
    'cancelled',
    'in progress',
    '__proto__',
    'constructor',
    'état',
  ])('the unknown status %s', (status) => {
    expect(understood(json({ job_id: 'job_1', status }))).toEqual({
      outcome: 'quarantined',
      jobId: 'job_1',
      status,
      reason: 'unknown status',
      drift: [{ kind: 'status', status, name: status, valueType: 'string' }],
    });
  });
});

describe('timestamps', () => {
  test.for([
    ['2026-01-15T10:35:00Z', '2026-01-15T10:35:00Z'],
    ['2026-01-15T12:35:00+02:00', '2026-01-15T10:35:00Z'],
    ['2026-01-15T10:35:00+00:00', '2026-01-15T10:35:00Z'],
    ['2026-01-15T10:35:00-00:00', '2026-01-15T10:35:00Z'],
    ['2026-01-14T23:45:00-10:45', '2026-01-15T10:30:00Z'],
    ['2026-01-01T00:30:00+01:00', '2025-12-31T23:30:00Z'],
    ['2024-02-29T23:59:59.5-00:30', '2024-03-01T00:29:59.5Z'],
    ['2026-01-15T10:35:00.000Z', '2026-01-15T10:35:00.000Z'],
    ['2026-01-15T10:35:00.123456789+02:00', '2026-01-15T08:35:00.123456789Z'],
    ['2026-01-15T10:35:00.99999999999999999999Z', '2026-01-15T10:35:00.99999999999999999999Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
    ['0001-01-01T02:00:00+02:00', '0001-01-01T00:00:00Z'],
    ['9999-12-31T23:59:59.999999999Z', '9999-12-31T23:59:59.999999999Z'],
  ])('%s becomes %s', ([text, utc]) => {
    expect(normalized(text as string)).toBe(utc);
    expect(eventOf(json(completed('job_1', { completed_at: text }))).occurredAt).toBe(utc);
  });

  test('all timestamps of a kind are normalized', () => {
    const offset = '2026-01-15T12:35:00+02:00';
    const utc = '2026-01-15T10:35:00Z';

    expect(dataOf(json(completed('job_1', { created_at: offset })))).toMatchObject({ created_at: utc });
    expect(dataOf(json(failed('job_1', { created_at: offset, failed_at: offset })))).toMatchObject({
      created_at: utc,
      failed_at: utc,
    });
    expect(dataOf(json(progress('job_1', 45, { estimated_completion: offset })))).toMatchObject({
      estimated_completion: utc,
    });
  });

  test('a fraction of 1,000 digits keeps them all', () => {
    const text = `2026-01-15T10:35:00.${'1234567890'.repeat(100)}Z`;

    expect(normalized(text)).toBe(text);
  });

  test('what looks like a timestamp in an unknown field stays as it came', () => {
    const content = completed('job_1', { seen_at: '2026-01-15T12:35:00+02:00' });

    expect(dataOf(json(content))).toMatchObject({ seen_at: '2026-01-15T12:35:00+02:00' });
  });

  test.for([
    '2026-01-15',
    '2026-01-15T10:35:00', // no zone: it would be a guess
    '2026-01-15 10:35:00Z',
    '2026-01-15T10:35Z',
    '2026-01-15T10:35:00+0200',
    '2026-01-15T10:35:00+25:00',
    '2026-01-15T10:35:00.Z',
    '2026-1-15T10:35:00Z',
    '2026-02-29T10:35:00Z',
    '2026-02-30T10:35:00Z',
    '2026-04-31T10:35:00Z',
    '2026-13-01T10:35:00Z',
    '2026-00-01T10:35:00Z',
    '2026-01-00T10:35:00Z',
    '2026-01-15T24:00:00Z',
    '2026-01-15T10:60:00Z',
    '2026-01-15T10:35:60Z',
    '0000-01-01T00:00:00Z',
    '0001-01-01T00:00:00+01:00', // in UTC it is the year 0
    '9999-12-31T23:59:59-00:01', // in UTC it is the year 10000
    '+010000-01-01T00:00:00Z',
    '-000001-01-01T00:00:00Z',
    '10000-01-01T00:00:00Z',
    ' 2026-01-15T10:35:00Z',
    '2026-01-15T10:35:00Z ',
    'yesterday',
  ])('%s is quarantined', (text) => {
    expect(understood(json(completed('job_1', { completed_at: text })))).toMatchObject({
      outcome: 'quarantined',
      reason: expect.stringContaining('completed_at'),
    });
  });
});

describe('numbers', () => {
  test('big numbers in unknown fields keep every digit', () => {
    const member =
      '"big":12345678901234567890,"deep":{"list":[9007199254740993,1e400,0.1000000000000000055511151231257827]}';

    expect(eventOf(withMember(completed('job_1'), member)).data).toContain(member);
  });

  test('a number in a known field that is written another way is the same integer', () => {
    const body = json(progress('job_1', 45)).replace(':45', ':45.0');
    expect(eventOf(body)).toMatchObject({ progress: 45, data: json(progress('job_1', 45)) });
    expect(eventOf(body.replace('45.0', '4.5e1')).progress).toBe(45);
    expect(eventId('default', eventOf(body.replace('45.0', '-0')))).toBe('default:job_1:processing:0');
    expect(eventOf(body.replace('45.0', '-0.0')).data).toContain('"progress_percentage":0,');
  });

  test('the last safe integer is accepted in a known field, and the next is quarantined', () => {
    expect(eventOf(cost('9007199254740991')).data).toContain('"cost_micros":9007199254740991');
    expect(eventOf(cost('-9007199254740991')).data).toContain('"cost_micros":-9007199254740991');
    const beyond = [
      '9007199254740992',
      '9007199254740993',
      '-9007199254740993',
      '12345678901234567890',
      '1e400',
      '1e30',
    ];
    for (const text of beyond) {
      expect(understood(cost(text))).toMatchObject({
        outcome: 'quarantined',
        reason: expect.stringContaining('cost_micros'),
      });
    }
  });

  test('a number that a double rounds to an integer is none', () => {
    const body = json(completed('job_1')).replace(':1250000', ':1250000.00000000000000001');

    expect(understood(body)).toMatchObject({ outcome: 'quarantined' });
  });

  test('a number beyond all doubles outside of known fields is passed on', () => {
    expect(eventOf(withMember(progress('job_1', 45), '"x":1e400')).data).toContain('"x":1e400');
  });
});

describe('text', () => {
  test('NULs and lone surrogates in a string are passed on, escaped', () => {
    const member = '"note":"a\\u0000b","half":"\\ud800","low":"x\\udc00y","\\udead":1';
    const { data } = eventOf(withMember(failed('job_1', { error_message: 'a\0b' }), member));

    expect(JSON.parse(data)).toMatchObject({
      error_message: 'a\0b',
      note: 'a\0b',
      half: '\ud800',
      low: 'x\udc00y',
      '\udead': 1,
    });
    expect(data).not.toContain('\0');
    expect(Buffer.from(data).toString()).toBe(data); // no lone surrogate is left bare: UTF-8 cannot hold one
  });

  test('keys with a special meaning in JavaScript pass through unchanged', () => {
    const member = '"__proto__":{"polluted":true},"constructor":{"prototype":1},"toString":"x"';
    const { data } = eventOf(withMember(completed('job_1'), member));

    expect(data).toContain(member);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('__proto__ cannot stand in for a required field', () => {
    expect(understood('{"__proto__":{"job_id":"job_1","status":"completed"}}').outcome).toBe('malformed');
    expect(
      understood('{"job_id":"job_1","status":"processing","__proto__":{"progress_percentage":1}}').outcome,
    ).toBe('quarantined');
  });

  test.for([
    ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['UTF-16', Buffer.from(json(completed('job_1')), 'utf16le')],
    ['a byte order mark', Buffer.from(`\ufeff${json(completed('job_1'))}`)],
    ['nothing', Buffer.alloc(0)],
    ['white space', Buffer.from('  \n')],
    ['half a document', Buffer.from(json(completed('job_1')).slice(0, -1))],
    ['two documents', Buffer.from(json(completed('job_1')).repeat(2))],
    ['an array', Buffer.from(json([completed('job_1')]))],
    ['a string', Buffer.from('"job_1"')],
    ['null', Buffer.from('null')],
    ['a number', Buffer.from('1e400')],
    ['a comment', Buffer.from(`// hello\n${json(completed('job_1'))}`)],
    ['a NUL after the end', Buffer.from(`${json(completed('job_1'))}\0`)],
    ['no job_id', Buffer.from('{"status":"completed"}')],
    ['no status', Buffer.from('{"job_id":"job_1"}')],
    ['a null job_id', Buffer.from('{"job_id":null,"status":"completed"}')],
    ['a number as job_id', Buffer.from('{"job_id":7,"status":"completed"}')],
    ['an object as job_id', Buffer.from('{"job_id":{"a":1},"status":"completed"}')],
    ['a number as status', Buffer.from('{"job_id":"job_1","status":1}')],
  ] as const)('%s is malformed', ([, body]) => {
    expect(understood(body)).toMatchObject({ outcome: 'malformed', reason: expect.any(String) });
  });

  test.for([
    ['{"status":"completed"}', 'job_id is missing'],
    ['{}', 'job_id is missing; status is missing'],
    [
      '{"job_id":7,"status":"completed"}',
      'job_id must be a string of 1 to 128 bytes, without white space and invisible characters; it is a number',
    ],
    ['{"job_id":"a","status":""}', 'status must be a string of 1 to 128 visible characters'],
    ['{"job_id":"a","job_id":"b","status":"completed"}', 'job_id occurs more than once'],
  ] as const)('%s: %s', ([body, reason]) => {
    expect(understood(body)).toEqual({ outcome: 'malformed', reason });
  });

  test('the reason of a malformed body quotes nothing of it', () => {
    for (const body of [
      '{"planted',
      '"planted"',
      '{"job_id":"planted planted"}',
      '{"job_id":"p","status":"planted\\u0000"}',
    ]) {
      expect(json(understood(body))).not.toContain('planted');
    }
  });
});

describe('repeated keys', () => {
  const body = json(completed('job_1')).slice(1);

  test.for([
    ['job_id', `{"job_id":"job_2",${body}`],
    ['job_id with the same value', `{"job_id":"job_1",${body}`],
    ['job_id, escaped', `{"job\\u005fid":"job_2",${body}`],
    ['job_id, all of it escaped', `{"\\u006a\\u006f\\u0062\\u005f\\u0069\\u0064":"job_2",${body}`],
    ['status', `{"status":"failed",${body}`],
    ['status, escaped', `{"\\u0073tatus":"failed",${body}`],
    ['job_id behind hostile depth', `{"x":${'['.repeat(100)}${']'.repeat(100)},"job_id":"job_2",${body}`],
  ] as const)('%s: nobody can say which job it is, so it is malformed', ([, text]) => {
    expect(understood(text).outcome).toBe('malformed');
  });

  test.for([
    ['another known field', `{"cost_cents":1,${body}`],
    ['another known field, escaped', `{"cost\\u005fcents":1,${body}`],
    ['an unknown field', `{"x":1,"x":1,${body}`],
    ['an unknown field of the same value', `{"x":1,"\\u0078":1,${body}`],
    ['a field within an unknown one', `{"x":{"y":[{"z":1,"z":2}]},${body}`],
  ] as const)('%s: parsers disagree on what it says, so it is quarantined', ([, text]) => {
    expect(understood(text)).toMatchObject({
      outcome: 'quarantined',
      jobId: 'job_1',
      status: 'completed',
      reason: 'a key occurs twice in one object',
    });
  });
});

describe('hostile depth', () => {
  test('63 levels below the body pass through', () => {
    expect(eventOf(deep(63, '[', ']')).data).toContain('['.repeat(63));
    expect(eventOf(deep(63, '{"k":', '}')).data).toContain('{"k":'.repeat(63));
  });

  test.for([
    ['arrays', 64, '[', ']'],
    ['arrays', 100_000, '[', ']'],
    ['objects', 64, '{"k":', '}'],
    ['objects', 100_000, '{"k":', '}'],
    ['both', 50_000, '[{"k":', '}]'],
  ] as const)('%s, %i levels deep, are quarantined', ([, levels, open, close]) => {
    expect(understood(deep(levels, open, close))).toMatchObject({
      outcome: 'quarantined',
      jobId: 'job_1',
      reason: 'the body is nested too deeply',
    });
  });

  test('a body that is nothing but depth is malformed', () => {
    expect(understood('['.repeat(100_000) + ']'.repeat(100_000)).outcome).toBe('malformed');
    expect(understood('['.repeat(100_000)).outcome).toBe('malformed');
  });
});

describe('the id of an event', () => {
  test('is the dedup key in readable form', () => {
    expect(eventId('default', eventOf(json(completed('job_7f3a'))))).toBe('default:job_7f3a:completed');
    expect(eventId('team-a', eventOf(json(progress('job_7f3a', 45))))).toBe('team-a:job_7f3a:processing:45');
  });

  test('tells any two keys apart, though a job id may look like the end of one, and can be read back', () => {
    const contents = [
      completed('a'),
      completed('a:completed'),
      completed('a:processing:4'),
      progress('a', 4),
      progress('a:processing:4', 5),
      failed('a'),
      failed('default:a'),
    ];
    const ids = contents.map((content) => eventId('default', eventOf(json(content))));

    expect(new Set(ids).size).toBe(contents.length);
    for (const [index, content] of contents.entries()) {
      const { jobId, status, progress: percent } = eventOf(json(content));
      expect(parseEventId(ids[index] ?? '')).toEqual({ source: 'default', jobId, status, progress: percent });
    }
  });
});

describe('job_id', () => {
  test.for([
    ['a', 'one byte'],
    ['a'.repeat(128), '128 bytes'],
    ['é'.repeat(64), '128 bytes in 64 letters'],
    ['漢'.repeat(42), '126 bytes in 42 letters'],
    ['😀'.repeat(32), '128 bytes in 32 letters'],
    ['a:b:c', 'colons'],
    ['"\\\'', 'quotes and backslashes'],
    ['../../etc', 'a path'],
    ['1', 'a digit'],
  ] as const)('%j is one: %s', ([jobId]) => {
    expect(eventOf(json(completed(jobId))).jobId).toBe(jobId);
  });

  test.for([
    ['', 'empty'],
    ['a'.repeat(129), '129 bytes'],
    [`${'é'.repeat(64)}a`, '129 bytes in 65 letters'],
    ['漢'.repeat(43), '129 bytes in 43 letters'],
    ['😀'.repeat(33), '132 bytes'],
    ['job 1', 'a space'],
    [' job_1', 'a leading space'],
    ['job_1\n', 'a line break at the end'],
    ['job\t1', 'a tab'],
    ['job\u00a01', 'a no-break space'],
    ['job\u20281', 'a line separator'],
    ['job\u30001', 'an ideographic space'],
    ['job\0', 'a NUL'],
    ['job\u001b[31m', 'an escape sequence'],
    ['job\u0085', 'a C1 control'],
    ['job\u200b1', 'a zero-width space'],
    ['job\u202e1', 'a right-to-left override'],
    ['job\ufeff', 'a byte order mark'],
    ['job\ud800', 'a lone surrogate'],
    ['job\ue000', 'a private letter'],
  ] as const)('%j is none: %s', ([jobId]) => {
    expect(understood(json(completed(jobId))).outcome).toBe('malformed');
  });
});

describe('content', () => {
  test('two bodies that say the same have the same hash', () => {
    const content = completed('job_1', { extra: { b: 1, a: [1, 2] } });
    const shuffled = Object.fromEntries(Object.entries(content).toReversed());

    expect(hash(json(content))).toBe(hash(json(shuffled)));
    expect(hash(json(content))).toBe(hash(JSON.stringify(content, null, 4)));
    expect(hash(json(content))).toBe(hash(json(content).replace(':125,', ':1.25e2,')));
    expect(hash(json(content))).toBe(hash(json(content).replace('job_type', 'job\\u005ftype')));
  });

  test('a different digit beyond 2^53 is different content', () => {
    const hashes = ['9007199254740992', '9007199254740993', '"9007199254740993"'].map((text) =>
      hash(withMember(completed('job_1'), `"x":${text}`)),
    );

    expect(new Set(hashes).size).toBe(3);
  });

  test('an unknown field that is added makes another content', () => {
    expect(hash(json(completed('job_1', { x: null })))).not.toBe(hash(json(completed('job_1'))));
  });
});
