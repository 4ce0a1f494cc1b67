// compose.yaml against the schema of Compose 2, and what else is promised of it. test/deploy/compose.test.ts runs what can be run of it.

import { Ajv2020 } from 'ajv/dist/2020.js';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

type Service = {
  readonly image?: string;
  readonly environment: Readonly<Record<string, unknown>>;
  readonly networks: Readonly<Record<string, { readonly ipv4_address: string }>> | readonly string[];
  readonly ports?: readonly string[];
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
};
type Compose = { readonly services: Readonly<Record<string, Service>> };

const compose = () => parse(read('compose.yaml'), { merge: true }) as Compose;
/** `schema/compose-spec.json` of compose-go, which Compose 2 is made of, of July 2026 (Apache-2.0). */
const schema = JSON.parse(read('test/support/compose-spec.json')) as object;

test('compose.yaml has the form that Compose 2 takes, which refuses a misspelt key', () => {
  const isValid = new Ajv2020({ strict: false, validateFormats: false }).compile(schema);
  const good = compose();
  expect({ isValid: isValid(good), errors: isValid.errors }).toEqual({ isValid: true, errors: null });
  const { proxy, ...others } = good.services;
  expect(isValid({ ...good, services: { ...others, proxy: { ...proxy, read_onyl: true } } })).toBe(false);
});

test('the replicas believe the proxy and nobody else, and only the proxy can be reached from outside', () => {
  const { services } = compose();
  const { 'relay-1': first, 'relay-2': second, proxy } = services;
  expect(second).toEqual(first);
  expect(first?.environment['TRUSTED_PROXIES']).toBe('10.213.47.2');
  expect(proxy?.networks).toEqual({ front: { ipv4_address: '10.213.47.2' } });
  expect(Object.keys(services).filter((name) => services[name]?.ports !== undefined)).toEqual(['proxy']);
  expect(proxy?.ports).toEqual(['8080:8080', '127.0.0.1:8081:8081']);
});

test('what is ours, and the proxy, has a read-only root and no capabilities', () => {
  const { services } = compose();
  for (const name of ['relay-1', 'relay-2', 'migrate', 'proxy'])
    expect(services[name]).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
});

test('the service has no password but its own accounts’, and no file has one', () => {
  const { services } = compose();
  const text = JSON.stringify(services['relay-1']);
  expect(text).toContain('postgres://tallyhook_run:${RUN_PASSWORD:?set RUN_PASSWORD}@');
  expect(text).not.toMatch(/MIGRATION_PASSWORD|POSTGRES_PASSWORD/);
  expect(read('compose.yaml').match(/:\/\/\w+:(?!\$\{)/g)).toBeNull();
});
