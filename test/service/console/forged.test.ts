// What another site's page can make a browser send, to every page of the console: refused, and nothing is done. Each form is
// sent honestly, too, so that a request that could do nothing anyway is not taken for one that was refused.

import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Ask, visitConsole } from '../../support/console.ts';
import { newRequests, send, stateOf } from '../../support/console-pages.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { holdOutbox } from '../../support/ledger.ts';
import { startTestService, type TestService } from '../../support/service.ts';

let database: TestDatabase;
let relay: TestService;
beforeAll(async () => {
  database = await createTestDatabase();
  await holdOutbox(database); // what waits stays as it is
  relay = await startTestService({ database });
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

type Headers = NonNullable<Ask['headers']>;
const site = (name: string): Headers => ({ 'sec-fetch-site': name });
const origin = (value: string | undefined): Headers => ({ 'sec-fetch-site': undefined, origin: value });

const fetched = (from: string, mode: string, dest: string): Headers => ({
  'sec-fetch-site': from,
  'sec-fetch-mode': mode,
  'sec-fetch-dest': dest,
});

const FORGED: readonly [name: string, headers: Headers][] = [
  ['a foreign Origin', origin('https://evil.example')],
  ['another port of this host, such as the sandbox’s', origin('http://127.0.0.1:1')],
  ['no Origin', origin(undefined)],
  ['Origin: null', origin('null')],
  ['cross-site', site('cross-site')],
  ['same-site', site('same-site')],
  ['none', site('none')],
  ['an unknown site', site('same-origin, cross-site')],
];

const requestsOf = async (method: 'get' | 'post') =>
  [...(await newRequests(relay))].filter(([name]) => name.startsWith(method));

test.for(FORGED)('each form, sent with %s, is refused and does nothing', async ([, headers]) => {
  const requests = await requestsOf('post');
  const { session } = await visitConsole(relay);
  const before = await stateOf(relay);
  expect(requests.length).toBeGreaterThan(15);
  for (const [name, page] of requests) {
    const { status, text } = await send(relay, name, page, { session, headers });
    expect([name, status, text]).toEqual([name, 403, expect.stringContaining('nothing was done')]);
  }
  expect(await stateOf(relay)).toEqual(before);
});

test('each form, sent without a session or with one that has ended, does nothing', async () => {
  const requests = await requestsOf('post');
  const { session } = await visitConsole(relay);
  const ended = await visitConsole(relay);
  await ended.post('/console/sign-out');
  const before = await stateOf(relay);
  for (const [name, page] of requests) {
    for (const given of [undefined, ended.session, `${session}x`, session.toLowerCase()]) {
      expect([name, (await send(relay, name, page, { session: given })).status]).toEqual([name, 401]);
    }
  }
  expect(await stateOf(relay)).toEqual(before);
});

/** They lead to the form of a replay, which acts: what was ticked may be too long for an address. */
const LEADS_ON: readonly string[] = ['post /replays/choose', 'post /publications/replay'];

test('each form, sent by the console, acts or leaves a line in the operator log; sent twice, it acts once', async () => {
  const requests = await requestsOf('post');
  const { session } = await visitConsole(relay);
  for (const [name, page] of requests) {
    const before = await stateOf(relay);
    const first = await send(relay, name, page, { session });
    const after = await stateOf(relay);
    const hasChanged = !isDeepStrictEqual(after, before);
    expect([name, first.status, hasChanged]).toEqual([name, page.status, !LEADS_ON.includes(name)]);
    if (page.form?.['key'] === undefined) continue; // it shows something, and each time is a line of its own

    const again = await send(relay, name, page, { session });
    expect([name, again.status, again.location]).toEqual([name, first.status, first.location]);
    expect([name, await stateOf(relay)]).toEqual([name, after]);
  }
});

test('each form is needed: an address that somebody opens does nothing, whatever it says', async () => {
  const { session } = await visitConsole(relay);
  const requests = await requestsOf('post');
  const before = await stateOf(relay);
  for (const [name, { path, form = {} }] of requests) {
    const address = { path: `${path}?${new URLSearchParams(form).toString()}` };
    const answer = await send(relay, 'get ', address, { session });
    expect([name, answer.status]).toEqual([name, expect.toBeOneOf([200, 303, 400, 404])]);
  }
  expect(await stateOf(relay)).toEqual(before);
});

test('each page opens from a link on another site, and not in a frame, a picture or a script of it; no visit changes anything', async () => {
  const requests = await requestsOf('get');
  const { session } = await visitConsole(relay);
  const before = await stateOf(relay);
  for (const [name, page] of requests) {
    const ask = async (headers: Headers) => (await send(relay, name, page, { session, headers })).status;
    for (const from of ['cross-site', 'same-site', 'none']) {
      expect([name, from, await ask(fetched(from, 'navigate', 'document'))]).toEqual([
        name,
        from,
        page.status,
      ]);
    }
    for (const [mode, dest] of [
      ['navigate', 'iframe'],
      ['navigate', 'embed'],
      ['no-cors', 'image'],
      ['no-cors', 'script'],
      ['cors', 'empty'],
    ] as const) {
      expect([name, dest, await ask(fetched('cross-site', mode, dest))]).toEqual([name, dest, 403]);
    }
  }
  expect(await stateOf(relay)).toEqual(before);
});
