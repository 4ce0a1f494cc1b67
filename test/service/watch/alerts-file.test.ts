// ALERTS_FILE: what it takes, and what it says of a fault, which is never a value.

import { expect, test } from 'vitest';
import { ConfigError } from '../../../src/base/errors.ts';
import { watchAlertsFile } from '../../../src/watch/messages/channels-file.ts';
import { createFolder } from '../../support/folder.ts';
import { createTestLog } from '../../support/test-log.ts';

const URL = 'https://hooks.example.com/planted-path';
const SECRET = 'planted-secret-of-the-pager';

async function faultsOf(content: unknown): Promise<readonly string[]> {
  await using folder = await createFolder();
  const path = await folder.write(
    'alerts.json',
    typeof content === 'string' ? content : JSON.stringify(content),
  );
  try {
    const file = await watchAlertsFile({ path, log: createTestLog().log });
    file.close();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    if (error.message.includes('planted')) throw new Error('a value is quoted', { cause: error });
    return error.faults;
  }
  return [];
}

const withChannel = (channel: unknown) => ({ channels: { room: channel } });
const withUrl = (url: unknown) => withChannel({ form: 'slack', url });
const NO_ADDRESS = 'must be a URL that starts with https:// (http:// to a loopback address only)';

test.for([
  ['no JSON', '{"planted', ['ALERTS_FILE is not JSON']],
  ['a list', [], ['ALERTS_FILE is not an object']],
  [
    'another field',
    { planted: 1 },
    ['ALERTS_FILE has a field that is none of console, runbook, channels, heartbeat'],
  ],
  [
    'a name in capitals',
    { channels: { PLANTED_planted: { form: 'slack', url: URL } } },
    ['ALERTS_FILE has a channel whose name is not 1 to 32 of a-z, 0-9 or -'],
  ],
  [
    'a form that is none',
    withChannel({ form: 'planted', url: URL }),
    ['ALERTS_FILE channels.room.form must be slack, teams or json'],
  ],
  ['no form', withChannel({ url: URL }), ['ALERTS_FILE channels.room.form must be slack, teams or json']],
  ['a text as a channel', withChannel(URL), ['ALERTS_FILE channels.room is not an object']],
  ['no address', withChannel({ form: 'slack' }), ['ALERTS_FILE channels.room.url is missing']],
  ['a number as an address', withUrl(7), ['ALERTS_FILE channels.room.url is not a text']],
  [
    'http to another machine',
    withUrl('http://planted.example.com/'),
    [`ALERTS_FILE channels.room.url ${NO_ADDRESS}`],
  ],
  ['another scheme', withUrl('file:///planted'), [`ALERTS_FILE channels.room.url ${NO_ADDRESS}`]],
  [
    'a name that begins as a loopback address',
    withUrl('http://127.0.0.1.planted.example/'),
    [`ALERTS_FILE channels.room.url ${NO_ADDRESS}`],
  ],
  [
    'a password',
    withUrl('https://user:planted@hooks.example.com/'),
    ['ALERTS_FILE channels.room.url must not have a user name or password in it'],
  ],
  [
    'a space',
    withUrl(`${URL} `),
    ['ALERTS_FILE channels.room.url has white space, a backslash or a control character in it'],
  ],
  [
    'a long address',
    withUrl(`${URL}${'x'.repeat(2_048)}`),
    ['ALERTS_FILE channels.room.url is longer than 2048 characters'],
  ],
  [
    'json without a secret',
    withChannel({ form: 'json', url: URL }),
    ['ALERTS_FILE channels.room.secret is missing'],
  ],
  [
    'a secret for slack',
    withChannel({ form: 'slack', url: URL, secret: SECRET }),
    ['ALERTS_FILE channels.room has a field that is none of form, url, severity'],
  ],
  [
    'another severity',
    withChannel({ form: 'slack', url: URL, severity: 'planted' }),
    ['ALERTS_FILE channels.room.severity must be "critical", or left out'],
  ],
  [
    'a console that is no address',
    { console: 'planted' },
    ['ALERTS_FILE console must be an http or https URL without user, query or fragment'],
  ],
  ['a heartbeat that is an address', { heartbeat: URL }, ['ALERTS_FILE heartbeat is not an object']],
  [
    'eleven channels',
    {
      channels: Object.fromEntries(
        Array.from({ length: 11 }, (_, index) => [`room-${index}`, { form: 'slack', url: URL }]),
      ),
    },
    ['ALERTS_FILE channels has more than 10'],
  ],
  [
    'a channel twice',
    `{"channels": {"room": {"form": "slack", "url": "${URL}"}, "room": {"form": "slack", "url": "${URL}"}}}`,
    ['ALERTS_FILE has a key more than once in an object'],
  ],
  [
    'several faults',
    {
      channels: { a: { form: 'slack', url: 'planted' }, b: { form: 'json', url: URL, secret: 'planted' } },
      heartbeat: {},
    },
    [
      `ALERTS_FILE channels.a.url ${NO_ADDRESS}`,
      'ALERTS_FILE channels.b.secret is shorter than 16 bytes',
      'ALERTS_FILE heartbeat.url is missing',
    ],
  ],
] as const)('at start it is a fault by its place, without the value: %s', async ([, content, faults]) => {
  expect(await faultsOf(content)).toEqual(faults);
});

test('channels take all incidents, or critical ones alone; http goes to a loopback address', async () => {
  await using folder = await createFolder();
  const channels = {
    all: { form: 'teams', url: URL },
    pager: { form: 'json', url: 'http://[::1]:9/', secret: SECRET, severity: 'critical' },
    near: { form: 'slack', url: 'http://localhost:9/' },
  };
  const path = await folder.write('alerts.json', JSON.stringify({ channels }));
  const file = await watchAlertsFile({ path, log: createTestLog().log });
  file.close();

  expect(
    file.current().channels.map(({ name, takes }) => [name, takes('critical'), takes('warning')]),
  ).toEqual([
    ['all', true, true],
    ['pager', true, false],
    ['near', true, true],
  ]);
});
