// A delivery that the secret of another source signed: tokens that see both sources are told, and to all others it looks like
// any delivery whose signature matches nothing, in each read that shows deliveries.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cliOf, parseLines } from '../../support/cli.ts';
import { createFolder, type TestFolder } from '../../support/folder.ts';
import { deliveries } from '../../support/ledger.ts';
import { listen } from '../../support/live-events.ts';
import { operators, type Operators, type TokenOptions } from '../../support/operators.ts';
import { secretOf } from '../../support/records.ts';
import { completed, deliver, newJobId } from '../../support/sender.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';

const SECRETS = {
  'team-a': 'a-secret-of-team-a-of-enough-bytes',
  'team-b': 'a-secret-of-team-b-of-enough-bytes',
};
const NO_MATCH = 'the signature does not match';
const TOLD = 'signed with the secret of another source: team-b';

const RUBBISH = 'rubbish';

type Item = Record<string, unknown>;

let folder: TestFolder;
let relay: TestService;
/** The ids of two deliveries to team-a whose likely mistakes were tried: one that team-b signed, and one that nobody did. */
let ofTeamB: string;
let ofNobody: string;

beforeAll(async () => {
  folder = await createFolder();
  const sources = Object.fromEntries(
    Object.entries(SECRETS).map(([name, secret]) => [name, { secrets: [secret] }]),
  );
  relay = await startTestService({
    env: {
      SOURCES_FILE: await folder.write('sources.json', JSON.stringify(sources)),
      REFUSED_ROWS_PER_MINUTE: '10000',
    },
  });
  ofTeamB = await sendTried();
  const nobodys = async () => {
    await deliver(`${relay.webhooks}/team-a`, RUBBISH, { secret: 'the-secret-of-nobody-at-all' });
    return (await rowsOf(null)).find((row) => row.body_bytes === RUBBISH.length && row.reason === NO_MATCH);
  };
  ofNobody = (await until('a trial', nobodys, { limitMs: 25_000, pollMs: 600 })).id;
});

afterAll(async () => {
  await relay[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const rowsOf = async (signedBy: string | null) =>
  (await deliveries(relay.database)).filter((row) => row.signed_by === signedBy);

/** Sends until it was tried with the secrets of other sources, which is left out under load. @returns the delivery's id */
async function sendTried(): Promise<string> {
  const before = await rowsOf('team-b');
  const body = JSON.stringify(completed(newJobId()));
  const send = async () => {
    await deliver(`${relay.webhooks}/team-a`, body, { secret: SECRETS['team-b'] });
    return (await rowsOf('team-b'))[before.length];
  };
  return (await until('a trial', send, { limitMs: 25_000, pollMs: 600 })).id;
}

const WHO: readonly (readonly [string, TokenOptions, string])[] = [
  ['a token without a limit is told', { sources: null }, TOLD],
  ['a token for both sources is told', { sources: ['team-a', 'team-b'] }, TOLD],
  ['a token for the claimed source is not told', { sources: ['team-a'] }, NO_MATCH],
  [
    'a token for the claimed source and a third one is not told',
    { sources: ['default', 'team-a'] },
    NO_MATCH,
  ],
];

describe.for(WHO)('%s', ([, token, reason]) => {
  const isTold = reason === TOLD;
  let api: Operators;
  beforeAll(async () => {
    api = await operators(relay, { role: 'auditor', ...token });
  });

  test.each(['/deliveries', '/deliveries?source=team-a', '/deliveries?outcome=unauthorized&limit=1'])(
    'in the list %s',
    async (path) => {
      const items: Item[] = [];
      let cursor: string | null = null;
      do {
        const at: string = cursor === null ? '' : `${path.includes('?') ? '&' : '?'}cursor=${cursor}`;
        const { body, text } = await api.get<{ items: Item[]; next_cursor: string | null }>(path + at);
        expect(text.includes('team-b') && !isTold).toBe(false);
        items.push(...body.items);
        cursor = body.next_cursor;
      } while (cursor !== null);

      expect(items.find(({ id }) => id === ofTeamB)).toMatchObject({ source: 'team-a', reason });
      expect(items.find(({ id }) => id === ofNobody)).toMatchObject({ reason: NO_MATCH });
      expect(items.every((item) => !('signed_by' in item))).toBe(true);
    },
  );

  test('in the delivery itself', async () => {
    const { body, text } = await api.get(`/deliveries/${ofTeamB}`);

    expect(body).toMatchObject({ source: 'team-a', reason });
    expect(text.includes('team-b')).toBe(isTold);
  });

  test.each(['ndjson', 'csv'])('in an export as %s', async (format) => {
    const { text } = await api.get(`/export?list=deliveries&format=${format}&source=team-a`);

    const line = text.split('\n').find((each) => each.includes(ofTeamB));
    expect(line).toContain(reason);
    expect(text.includes('team-b')).toBe(isTold);
  });
});

test('so it is on the command line', async () => {
  for (const [sources, reason] of [
    [null, TOLD],
    [['team-a'], NO_MATCH],
  ] as const) {
    const cli = await cliOf(relay, { role: 'viewer', sources });
    const list = await cli.run('deliveries', 'list', '--outcome', 'unauthorized');
    const shown = await cli.run('deliveries', 'show', ofTeamB);

    expect(parseLines(list.stdout).find(({ id }) => id === ofTeamB)).toMatchObject({ reason });
    expect(shown.stdout).toContain(reason);
    expect((list.stdout + shown.stdout).includes('team-b')).toBe(reason === TOLD);
  }
});

test('live, each of those who listen at once is told what he may know', async () => {
  await using told = await listen(await operators(relay, { role: 'viewer' }));
  await using toldToo = await listen(
    await operators(relay, { role: 'viewer', sources: ['team-b', 'team-a'] }),
  );
  await using untold = await listen(await operators(relay, { role: 'viewer', sources: ['team-a'] }));
  const id = await sendTried();

  const reasonsOf = ({ events }: typeof told) =>
    events.filter((event) => event.id === id).map(({ value }) => value['reason']);
  await expect.poll(() => reasonsOf(told)).toEqual([TOLD]);
  await expect.poll(() => reasonsOf(toldToo)).toEqual([TOLD]);
  await expect.poll(() => reasonsOf(untold)).toEqual([NO_MATCH]);
  expect(JSON.stringify(untold.events)).not.toContain('team-b');
  expect(JSON.stringify(told.events)).not.toContain('signed_by');
});

test('no filter and no order tells a token of the claimed source apart what it may not know', async () => {
  const limited = await operators(relay, { role: 'auditor', sources: ['team-a'] });
  const ids = async (query: string) => {
    const { body } = await limited.get<{ items: Item[] }>(`/deliveries?limit=200${query}`);
    return body.items.map(({ id }) => id);
  };
  const inOrder = (await deliveries(relay.database))
    .toSorted((a, b) => b.received_at.getTime() - a.received_at.getTime() || (a.id < b.id ? 1 : -1))
    .map(({ id }) => id);

  expect(await ids('')).toEqual(inOrder);
  expect(await ids('&outcome=unauthorized')).toEqual(inOrder);
  expect(await ids(`&secret_fingerprint=${secretOf(SECRETS['team-b']).fingerprint}`)).toEqual([]);
  for (const query of ['source=team-b', 'signed_by=team-b', 'reason=x']) {
    const { status, text } = await limited.get(`/deliveries?${query}`);
    expect([400, 403]).toContain(status);
    expect(text).not.toContain(ofTeamB);
  }
  // But for what any two deliveries differ in, the two look alike.
  const shape = async (id: string) => {
    const { body } = await limited.get(`/deliveries/${id}`);
    const { id: _id, received_at: _at, body_bytes: _bytes, headers: _headers, ...rest } = body;
    return rest;
  };
  expect(await shape(ofTeamB)).toEqual(await shape(ofNobody));
});

test('the sources and statistics of neither count it as a match', async () => {
  const api = await operators(relay, { role: 'viewer' });
  const { body } = await api.get<{ items: { source: string; secrets: Item[] }[] }>('/sources');

  const secrets = body.items.flatMap((item) => item.secrets);
  expect(secrets.length).toBeGreaterThanOrEqual(3);
  expect(secrets.filter((secret) => secret['last_matched_at'] !== null)).toEqual([]);
});
