// The trial of likely mistakes behind a signature: what it finds, and that what it costs tells nothing of the sources.

import { createHmac, type KeyObject } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createKeyRing } from '../../../src/intake/signature.ts';
import {
  createTrial,
  DIGESTS_PER_TURN,
  OTHER_SECRETS_MAX,
  TRIED_BODY_BYTES,
} from '../../../src/intake/signature-trial.ts';
import { secretOf } from '../../support/records.ts';
import { sign } from '../../support/sender.ts';

const OLD = 'the-old-secret-of-enough-bytes';
const NEW = 'the-new-secret-of-enough-bytes';
const OTHER = 'the-secret-of-another-source';
const SOURCES = {
  default: [OLD, NEW],
  'team-a': [OTHER],
};
const NO_MATCH = { reason: 'the signature does not match', signedBy: null };
const NOT_TRIED = {
  reason: 'the signature does not match (likely mistakes were not tried)',
  signedBy: null,
};
/** Of the nth delivery of a flood: each third one is sent to an address that is no source. */
const isUntried = ({ reason }: { reason: string }, n: number) =>
  reason === (n % 3 === 1 ? 'no source of this name is set up' : NOT_TRIED.reason);
const text = '{"job_id":"job_1"}';
const body = Buffer.from(text);

const eightSecretsOf = (source: string) => Array.from({ length: 8 }, (_, n) => `secret-${n}-of-${source}`);

function start(sources: Record<string, string[]> = SOURCES) {
  const ring = createKeyRing(
    new Map(Object.entries(sources).map(([name, secrets]) => [name, secrets.map(secretOf)])),
  );
  const clock = { ms: 0 };
  const state = { isBusy: false, digests: 0, turn: 0 };
  const perTurn = new Map<number, number>();
  const digest = (key: KeyObject, bytes: Buffer) => {
    state.digests += 1;
    perTurn.set(state.turn, (perTurn.get(state.turn) ?? 0) + 1);
    return createHmac('sha256', key).update(bytes).digest();
  };
  const trial = createTrial({ keyRing: () => ring, isBusy: () => state.isBusy, now: () => clock.ms, digest });
  /** A second later than the one before, and how many digests it cost. */
  async function find(source: string, signature: string, content: Buffer | undefined = body) {
    clock.ms += 1_000;
    const before = state.digests;
    const cause = await trial.find(source, signature, content);
    return { cause, digests: state.digests - before };
  }
  return { trial, find, clock, state, perTurn };
}

describe('it finds', () => {
  test.for([
    [
      'a newline that was not sent',
      `${text}\n`,
      text,
      'signed with a final newline that the body does not have',
    ],
    [
      '\\r\\n that was not sent',
      `${text}\r\n`,
      text,
      'signed with a final newline that the body does not have',
    ],
    ['a newline that was not signed', text, `${text}\n`, 'signed without the final newline of the body'],
    ['\\r\\n that was not signed', text, `${text}\r\n`, 'signed without the final newline of the body'],
    [
      '\\n in place of \\r\\n',
      `${text}\n`,
      `${text}\r\n`,
      'signed with another final newline (\\n or \\r\\n)',
    ],
    ['another body', `${text} `, text, NO_MATCH.reason],
  ] as const)('%s', async ([, signed, sent, reason]) => {
    const { find } = start();
    for (const secret of [OLD, NEW]) {
      const { cause } = await find('default', sign(signed, secret), Buffer.from(sent));
      expect(cause).toEqual({ reason, signedBy: null });
    }
  });

  test('the source whose secret it was, apart from the reason', async () => {
    const { find } = start();

    expect((await find('default', sign(body, OTHER))).cause).toEqual({ ...NO_MATCH, signedBy: 'team-a' });
    expect((await find('team-a', sign(body, NEW))).cause).toEqual({ ...NO_MATCH, signedBy: 'default' });
  });

  test('also at an address that is no source, whose own reason stays', async () => {
    const { find } = start();
    const reason = 'no source of this name is set up';

    expect((await find('unknown', sign(body, OTHER))).cause).toEqual({ reason, signedBy: 'team-a' });
    expect((await find('unknown', sign(body, 'some-other-secret-altogether'))).cause).toEqual({
      reason,
      signedBy: null,
    });
  });

  test('no other source where the secret has become its own meanwhile', async () => {
    const { find } = start();

    expect((await find('default', sign(body, OLD))).cause).toEqual(NO_MATCH);
  });
});

test('a trial that fails does not reject: the refusal is recorded as one that was not tried', async () => {
  const trial = createTrial({
    keyRing: () => createKeyRing(new Map([['default', [secretOf(OLD)]]])),
    isBusy: () => false,
    now: () => 0,
    digest: () => {
      throw new Error('no memory');
    },
  });
  await expect(trial.find('default', sign(text, OTHER), body)).resolves.toEqual(NOT_TRIED);
});

describe('its number of digests', () => {
  test('is the same whether the source exists or not, whatever matches, and whatever the body’s end', async () => {
    const { find } = start();
    const costs = new Set<number>();
    for (const source of ['default', 'team-a', 'unknown', '__proto__']) {
      for (const secret of [OLD, NEW, OTHER, 'some-other-secret-altogether']) {
        for (const [signed, sent] of [
          ['{}', '{}'],
          ['{}', '{}\n'],
          ['{}\n', '{}'],
          ['{}\n', '{}\r\n'],
        ] as const) {
          costs.add((await find(source, sign(signed, secret), Buffer.from(sent))).digests);
        }
      }
    }
    expect([...costs]).toEqual([2 * 2 + 3]);
  });

  test('has a bound in all and in a turn of the event loop, however many sources there are', async () => {
    const { find, state, perTurn } = start(
      Object.fromEntries(
        Array.from({ length: 100 }, (_, n) => [`source-${n}`, eightSecretsOf(`source-${n}`)]),
      ),
    );
    let isOver = false;
    const tick = () => {
      state.turn += 1;
      if (!isOver) setImmediate(tick);
    };
    tick();

    const { digests } = await find('source-1', sign(body, OTHER));
    isOver = true;

    expect(digests).toBe(2 * 8 + OTHER_SECRETS_MAX);
    expect(digests).toBe(256);
    expect(Math.max(...perTurn.values())).toBeLessThanOrEqual(DIGESTS_PER_TURN);
  });

  test('is none in the turn in which it is asked for', async () => {
    const { trial, state } = start();
    const found = trial.find('default', sign(body, OTHER), body);
    for (let n = 0; n < 20; n++) await Promise.resolve();

    expect(state.digests).toBe(0);
    await found;
    expect(state.digests).toBeGreaterThan(0);
  });
});

describe('it is not made', () => {
  test('more than twice in any second, whatever the sources: the rest of a flood has a reason that says so', async () => {
    const { trial, clock, state } = start();
    const flood = async (times: number) => {
      const found = await Promise.all(
        Array.from({ length: times }, (_, n) =>
          trial.find(['default', 'unknown', 'team-a'][n % 3] as string, sign(`${text}\n`, OLD), body),
        ),
      );
      expect(found.filter(isUntried).length).toBeGreaterThanOrEqual(times - 2);
      return found.filter(({ reason }) => reason.includes('newline')).length;
    };
    const trials = () => state.digests / 7;

    await flood(1_000);
    expect(trials()).toBe(2);
    clock.ms += 999;
    await flood(1_000);
    expect(trials()).toBe(2);
    clock.ms += 1;
    expect(await flood(1)).toBe(1);
    clock.ms += 500;
    await flood(1_000);
    expect(trials()).toBe(4);
    clock.ms += 500;
    await flood(1_000);
    expect(trials()).toBe(5); // the second of the two was half a second ago
  });

  test('while two are not done yet, however long they take', async () => {
    const { trial, clock, state } = start();
    const found: Promise<unknown>[] = [];
    for (let n = 0; n < 10; n++) {
      clock.ms += 1_000;
      found.push(trial.find('default', sign(body, OTHER), body));
    }
    await Promise.all(found);

    expect(state.digests).toBe(2 * 7);
  });

  test('under load', async () => {
    const { find, state } = start();
    state.isBusy = true;
    expect(await find('default', sign(body, OTHER))).toEqual({ cause: NOT_TRIED, digests: 0 });
    expect((await find('unknown', sign(body, OTHER))).cause.reason).toBe('no source of this name is set up');
    state.isBusy = false;
    expect((await find('default', sign(body, OTHER))).cause.signedBy).toBe('team-a');
  });

  test.for([
    ['a body above 64 KiB', Buffer.alloc(TRIED_BODY_BYTES + 1), undefined],
    ['a signature of another form', body, `sha256=${'z'.repeat(64)}`],
  ] as const)('for %s', async ([, content, signature]) => {
    const { find } = start();

    expect(await find('default', signature ?? sign(content, OTHER), content)).toEqual({
      cause: NOT_TRIED,
      digests: 0,
    });
  });

  test('for a body of 64 KiB it is', async () => {
    const { find } = start();
    const content = Buffer.alloc(TRIED_BODY_BYTES, 'x');

    expect((await find('default', sign(content, OTHER), content)).cause.signedBy).toBe('team-a');
  });
});
