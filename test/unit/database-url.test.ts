// The servers that DATABASE_URL names.

import { expect, test } from 'vitest';
import { databaseUrlForm, databaseUrls } from '../../src/base/net/database-url.ts';

const faultOf = (text: string) => databaseUrlForm().safeParse(text).error?.issues[0]?.message;

test('several hosts give one URL each, in their order, whatever the password has', () => {
  expect(databaseUrls('postgres://u:p@db/x?sslmode=require')).toEqual([
    'postgres://u:p@db/x?sslmode=require',
  ]);
  expect(databaseUrls('postgresql://u:a,b@c@h1:5433,h2,[::1]:5434/x')).toEqual([
    'postgresql://u:a,b@c@h1:5433/x',
    'postgresql://u:a,b@c@h2/x',
    'postgresql://u:a,b@c@[::1]:5434/x',
  ]);
});

test('target_session_attrs is taken out, and the rest stays', () => {
  expect(databaseUrls('postgres://h1,h2/x?target_session_attrs=read-write&sslmode=require')).toEqual([
    'postgres://h1/x?sslmode=require',
    'postgres://h2/x?sslmode=require',
  ]);
});

test.for([
  'postgres://u:p@h1:5432,h2:5433/x',
  'postgres://u:p@h1,h2/x?target_session_attrs=read-write',
  'postgres://u:p@h1,h2/x?target_session_attrs=primary',
  'postgres://u:p@h1/x?target_session_attrs=any',
  'postgres://u:p@h1/x?target_session_attrs=',
  'postgres:///x?host=/var/run/postgresql',
  ' POSTGRES://u:p@h1/x\n',
  'postgres://u:p,q@h1,h2/x',
  'postgres://u:p@q@h1/x',
])('%s is taken', (url) => {
  expect(faultOf(url)).toBeUndefined();
});

const TWO = expect.stringMatching(/^names several URLs, or the user twice/);

test.for([
  ['planted', 'must be a URL that starts with postgres:// or postgresql://'],
  [
    'postgres://u:planted@h1:5432,h2:planted/x',
    'has a host or a port that is none: write host1:5432,host2:5432',
  ],
  ['postgres://u:planted@h1, h2/x', 'has a host or a port that is none: write host1:5432,host2:5432'],
  ['postgres://u:planted@h1,,h2/x', 'has an empty host between commas'],
  ['postgres://u:planted@h1,h2,/x', 'has an empty host between commas'],
  ['postgres://u:planted@h1,h1/x', 'names one host twice'],
  [
    `postgres://u:planted@${Array.from({ length: 17 }, (_, nth) => `h${nth}`).join()}/x`,
    'names more than 16 hosts',
  ],
  [
    'postgres:///x?host=h1,h2',
    'names hosts by ?host= or ?port=: write several before the database, with commas between them',
  ],
  [
    'postgres://h1,h2/x?host=h3',
    'names hosts by ?host= or ?port=: write several before the database, with commas between them',
  ],
  ['postgres://u:planted@h1/x,postgres://u:planted@h2/x', TWO],
  ['postgres://u:planted@h1,postgres://u:planted@h2/x', TWO],
  ['postgres://u:planted@h1,u:planted@h2/x', TWO],
  ['postgres://u:planted@h1/x,h2/x', TWO],
  [
    'postgres://u:planted@h1,h2/x?target_session_attrs=standby',
    'has a target_session_attrs that is not read-write: each delivery is a write',
  ],
] as const)('%s is a fault', ([url, fault]) => {
  expect(faultOf(url)).toEqual(fault);
  expect(faultOf(url)).not.toContain('planted');
});
