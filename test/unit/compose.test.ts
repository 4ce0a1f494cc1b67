// Containers cannot be started where the tests run: what compose.yaml says is held against what Compose 1.29 and 2 both know.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const file = readFileSync(new URL('../../compose.yaml', import.meta.url), 'utf8');
/** The keys at this depth of blocks, each once. */
const keysAt = (depth: number) =>
  new Set(Array.from(file.matchAll(new RegExp(`^ {${2 * depth}}(\\w+):`, 'gm')), ([, key = '']) => key));

test('compose.yaml uses no more than Compose 1.29 knows: no configs with content, no merge tags, no profiles of watching', () => {
  expect(keysAt(0)).toEqual(new Set(['services', 'secrets', 'volumes']));
  expect(keysAt(1)).toEqual(new Set(['migrate', 'relay', 'postgres', 'rabbitmq', 'signing']));
  // Of services, and `file` of a secret. All are in the schema of 1.29.2 (compose/config/compose_spec.json).
  const known = `build cap_drop command depends_on entrypoint environment file healthcheck hostname image mem_limit ports
    read_only restart secrets security_opt shm_size stop_grace_period volumes`;
  expect([...keysAt(2)].filter((key) => !known.split(/\s+/).includes(key))).toEqual([]);
  expect(file).not.toMatch(/!(?:reset|override)\b/);
});

test('the database’s entry point writes the role of the service before the server’s own, with a password that no file has', () => {
  const [, script = ''] = /entrypoint:\n(?: {6}.*\n)*? {6}- \|\n((?: {8}.*\n)+)/.exec(file) ?? [];
  expect(script.split('\n').map((line) => line.trim())).toEqual([
    `printf "create role tallyhook_run login password '%s';" "$$RUN_PASSWORD" > /docker-entrypoint-initdb.d/roles.sql`,
    'exec docker-entrypoint.sh postgres',
    '',
  ]);
  expect(file).toContain('      RUN_PASSWORD: ${RUN_PASSWORD:?set RUN_PASSWORD}\n');
});
