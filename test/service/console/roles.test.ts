// Each role, each page, each action: the answer, and what the pages offer. A page that the table of requests does not name
// fails here.

import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { beginSession } from '../../../src/operators/kernel/access/sessions.queries.ts';
import { mayAct } from '../../../src/operators/kernel/access/roles.ts';
import { askConsole, COOKIE_NAME, type PageAnswer, visitConsole } from '../../support/console.ts';
import {
  newRequests,
  PAGE_NAMES,
  pageAt,
  type PageRequest,
  send,
  stateOf,
} from '../../support/console-pages.ts';
import { holdOutbox } from '../../support/ledger.ts';
import { newToken } from '../../support/operators.ts';
import { hold } from '../../support/outbox.ts';
import { connectTestDatabase } from '../../support/relay.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

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

type Visitor = {
  readonly role: 'viewer' | 'auditor' | 'operator' | 'admin';
  readonly sources: readonly string[] | null;
};

const mayOpen = ({ role, sources }: Visitor, page: PageRequest): boolean =>
  mayAct(role, page.role) && (sources === null || page.isForAllSources === undefined);

/** What a press on the page could lead to: links, forms, and buttons that send a form elsewhere. */
function offersOf({ html, links, forms }: PageAnswer): { method: 'get' | 'post'; href: string }[] {
  const elsewhere = [...html.matchAll(/formaction="([^"]+)"/g)].map(([, href = '']) => href);
  return [
    ...links.map(({ href }) => ({ method: 'get', href }) as const),
    ...forms.map(({ method, action }) => ({ method, href: action })),
    ...elsewhere.map((href) => ({ method: 'get', href }) as const),
  ].filter(({ href }) => href.startsWith('/console'));
}

/** Every visitor has them; they are no page of the list. */
const SIGNING: readonly string[] = ['/console/sign-in', '/console/sign-out'];

test('the table of requests names each page of the console, and no other', async () => {
  const requests = await newRequests(relay);
  expect([...requests.keys()].toSorted()).toEqual(PAGE_NAMES.toSorted());
});

describe.for([null, ['default']])('limited to the sources %j', (sources) => {
  test.for(['viewer', 'auditor', 'operator', 'admin'] as const)(
    'the role %s gets its answer from every page, and is offered nothing that it may not do',
    async (role) => {
      const visitor = { role, sources };
      const requests = await newRequests(relay);
      const { session } = await visitConsole(relay, visitor);
      const [answered, expected]: [Record<string, number>, Record<string, number>] = [{}, {}];
      const offered = new Set<string>();
      for (const [name, page] of requests) {
        const answer = await send(relay, name, page, { session });
        answered[name] = answer.status;
        expected[name] = mayOpen(visitor, page) ? page.status : 403;
        for (const { method, href } of offersOf(answer)) offered.add(pageAt(method, href) ?? href);
      }
      expect(answered).toEqual(expected);
      const allowed = [...requests].filter(([, page]) => mayOpen(visitor, page)).map(([name]) => name);
      expect([...offered].filter((name) => !SIGNING.includes(name)).toSorted()).toEqual(
        [...offered].filter((name) => (allowed as string[]).includes(name)).toSorted(),
      );
    },
  );
});

/** How a page tells its reader to act, or names what leads there. What "an operator can" do is a fact for everybody. */
const TOLD = {
  auditor: /\b(?:Show the (?:body|CloudEvent|error message)|Compare the two bodies|Download it|Export)\b/,
  operator:
    /\b(?:Release|Discard|Retry|Park|Replay …|New replay|Pause|Resume|Cancel|Bind|Decide on|decide on it)\b|[,;] (?:then send|resume|cancel|release|discard|retry)\b/,
  admin: /\b(?:Revoke|New token|End the session)\b/,
} as const;

test('no page tells a role to do what it may not, and each of these words is on some page', async () => {
  const told = new Set<string>();
  for (const role of ['viewer', 'auditor', 'operator', 'admin'] as const) {
    const requests = await newRequests(relay);
    await hold(relay.database, { state: 'returned' }, 'e.sequence % 2 = 0');
    await hold(relay.database, { state: 'parked' });
    const { session } = await visitConsole(relay, { role });
    for (const [name, page] of requests) {
      if (!name.startsWith('get') || !mayAct(role, page.role) || page.status !== 200) continue;
      if (name === 'get /live/stream' || name === 'get /live') continue; // pauses this tab
      if (name.startsWith('get /docs')) continue; // the documents are the same for everybody
      const { html } = await send(relay, name, page, { session });
      const [, main = ''] =
        /<main[^>]*>(.*)<\/main>/s.exec(html.replaceAll(/<details class="same-as">.*?<\/details>/gs, '')) ??
        [];
      for (const [needed, words] of Object.entries(TOLD)) {
        const said = words.exec(main.replaceAll(/<[^>]*>/g, ' '))?.[0];
        if (said === undefined) continue;
        told.add(needed);
        expect({ role, name, said, may: mayAct(role, needed as keyof typeof TOLD) }).toEqual({
          role,
          name,
          said,
          may: true,
        });
      }
    }
  }
  expect([...told].toSorted()).toEqual(Object.keys(TOLD).toSorted());
});

test('a token limited to another source finds nothing of this one, and changes nothing', async () => {
  const requests = await newRequests(relay);
  const { session } = await visitConsole(relay, { role: 'admin', sources: ['elsewhere'] });
  const named = [...requests].filter(([, { path, form, isForAllSources }]) => {
    const about = `${path}${JSON.stringify(form ?? {})}`;
    return (
      isForAllSources === undefined &&
      /default|ids=\d|"ids"|[0-9a-f]{8}-[0-9a-f]{4}/.test(about.replace(/"key":"[^"]*"/, ''))
    );
  });
  const before = await stateOf(relay);
  const answers: Record<string, number> = {};
  for (const [name, page] of named) {
    const { status, text } = await send(relay, name, page, { session });
    answers[name] = status;
    expect([name, text]).not.toEqual([name, expect.stringContaining('unheard_of')]);
  }
  expect(answers).toMatchInlineSnapshot(`
    {
      "get /deliveries/:id": 403,
      "get /deliveries/:id/body": 303,
      "get /deliveries/:id/difference": 303,
      "get /deliveries/:id/download": 303,
      "get /event": 403,
      "get /job": 403,
      "get /outbox/discard": 200,
      "get /outbox/park": 200,
      "get /outbox/retry": 200,
      "get /quarantine/discard": 200,
      "get /quarantine/release": 200,
      "get /replays/:id": 403,
      "get /replays/:id/cancel": 403,
      "get /replays/new": 403,
      "get /source": 404,
      "post /deliveries/:id/body": 403,
      "post /deliveries/:id/difference": 403,
      "post /deliveries/:id/download": 403,
      "post /event": 403,
      "post /event/download": 403,
      "post /job": 403,
      "post /outbox/discard": 200,
      "post /outbox/park": 200,
      "post /outbox/retry": 200,
      "post /publications/replay": 403,
      "post /quarantine/discard": 200,
      "post /quarantine/release": 200,
      "post /replays/:id/cancel": 403,
      "post /replays/:id/pause": 403,
      "post /replays/:id/resume": 403,
      "post /replays/choose": 303,
      "post /replays/new": 403,
    }
  `);
  // An order names nothing that it may see: it answers that it did nothing, as of ids that do not exist.
  const { idempotency_keys: _keys, operator_log: _log, ...kept } = before;
  expect(await stateOf(relay)).toMatchObject(kept);
});

test('a scraper has no session; and if it had one, each page would be closed to it', async () => {
  const { token } = await newToken(database, { role: 'scraper' });
  await using connection = connectTestDatabase(database);
  const { value } = await beginSession(connection.db, { tokenId: token.id, remoteAddress: null });
  for (const [name, page] of await newRequests(relay)) {
    expect([name, (await send(relay, name, page, { session: value })).status]).toEqual([name, 403]);
  }
});

test('without a session each page leads to signing in, and each form is refused', async () => {
  for (const [name, page] of await newRequests(relay)) {
    const { status, location, text } = await send(relay, name, page, { session: undefined });
    const said = location ?? /Nothing was done\./.exec(text)?.[0];
    expect([name, status, said]).toEqual(
      name.startsWith('post')
        ? [name, 401, 'Nothing was done.']
        : [name, 303, `/console/sign-in?next=${encodeURIComponent(page.path)}`],
    );
  }
});

test('who asks for the head of the live stream alone takes no place of a listener', async () => {
  const { session } = await visitConsole(relay, { role: 'viewer' });
  const page = { path: '/console/live/stream' };
  const head = `HEAD ${page.path} HTTP/1.1\r\nHost: localhost\r\nCookie: ${COOKIE_NAME}=${session}\r\n\r\n`;
  const sockets = Array.from({ length: 8 }, () =>
    connect(Number(new URL(relay.operators).port), '127.0.0.1'),
  );
  for (const socket of sockets) {
    socket.write(head);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 200 /);
  }
  expect((await send(relay, 'get /live/stream', page, { session })).status).toBe(200);
  for (const socket of sockets) socket.destroy();
});

test('an address that is no page is 404, and needs a session like the pages', async () => {
  const { session } = await visitConsole(relay, { role: 'viewer' });
  const page = { path: '/console/nothing-here' };
  expect((await send(relay, 'get /nothing-here', page, { session })).status).toBe(404);
  expect((await askConsole(relay, page.path)).status).toBe(303);
});
