// `.local/env` and `.local/sources.json`, as npm start writes them and a shell and the commands read them.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { relative } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  forgetLocalRun,
  given,
  type LocalEnv,
  readLocalEnv,
  writeLocalEnv,
} from '../../scripts/local-env.ts';
import { localSecrets } from '../../scripts/local-sources.ts';
import { signingSecretIfKnown } from '../../src/tools/send/secret.ts';
import { createFolder, type TestFolder } from '../support/folder.ts';

const ENV: LocalEnv = {
  PORT: '8080',
  OPERATOR_PORT: '8081',
  DATABASE_URL: 'postgres://u:p@127.0.0.1:5432/tallyhook',
  AMQP_URL: 'amqp://u:p@127.0.0.1:5672',
  SIGNING_SECRETS: "it's $HOME`, and more",
  SIGNING_SECRETS_FILE: '/a folder/secrets',
  SIGNING_SECRET: "it's one",
  SOURCES_FILE: '/a folder/sources.json',
  ENVIRONMENT: 'test',
  TALLYHOOK_URL: 'http://127.0.0.1:8081',
  TALLYHOOK_TOKEN: 'thk_test_x',
};

let folder: TestFolder;
let file: string;

beforeEach(async () => {
  folder = await createFolder();
  file = folder.path('env');
  onTestFinished(() => folder[Symbol.asyncDispose]());
  for (const name of Object.keys(ENV)) vi.stubEnv(name, undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
});

/** What a program sees that is started from a shell after `. ./.local/env`. */
function seenAfterSourcing(): unknown {
  const program = 'process.stdout.write(JSON.stringify(process.env))';
  const args = ['-c', '. "$1"; exec "$2" -e "$3"', 'sh', file, process.execPath, program];
  return JSON.parse(execFileSync('/bin/sh', args, { env: {}, encoding: 'utf8' }));
}

describe('.local/env', () => {
  test('reaches what a shell starts after ". ./.local/env", value for value, and is closed to others', () => {
    writeLocalEnv(file, ENV);
    expect(seenAfterSourcing()).toMatchObject(ENV);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('is read back by commands as it was written', () => {
    const env = { ...ENV, SIGNING_SECRETS: "it's one of two", AMQP_URL: 'amqp://u:"p$`\\@h' };
    writeLocalEnv(file, env);
    expect(readLocalEnv(file)).toMatchObject(env);
  });

  test('of an older version, without export, is read too', async () => {
    await folder.write('env', "PORT=9090\nSIGNING_SECRETS='an old one'\n");
    expect(readLocalEnv(file)).toEqual({ PORT: '9090', SIGNING_SECRETS: 'an old one' });
  });

  test('leaves out what is empty', () => {
    writeLocalEnv(file, { ...ENV, SIGNING_SECRETS: '' });
    expect(readLocalEnv(file)).not.toHaveProperty('SIGNING_SECRETS');
  });
});

describe('a shell that read .local/env', () => {
  test('gives npm start nothing by it: what an earlier start chose is chosen again', () => {
    const env = { ...ENV, SIGNING_SECRETS: "it's one of two" };
    writeLocalEnv(file, env);
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    forgetLocalRun(file);
    for (const name of Object.keys(ENV)) expect({ name, given: given(name) }).toEqual({ name });
  });

  test('keeps what the caller gave to the earlier start, and what was changed since', () => {
    vi.stubEnv('DATABASE_URL', ENV.DATABASE_URL);
    writeLocalEnv(file, ENV);
    vi.stubEnv('PORT', '9999');
    forgetLocalRun(file);
    expect(given('DATABASE_URL')).toBe(ENV.DATABASE_URL);
    expect(given('PORT')).toBe('9999');
  });

  test('gives nothing by a value that the earlier start read from a file', async () => {
    vi.stubEnv('DATABASE_URL_FILE', await folder.write('url', ENV.DATABASE_URL));
    writeLocalEnv(file, ENV);
    vi.stubEnv('DATABASE_URL_FILE', undefined);
    vi.stubEnv('DATABASE_URL', ENV.DATABASE_URL);
    forgetLocalRun(file);
    expect(given('DATABASE_URL')).toBeUndefined();
  });

  test('keeps all where the file is of an older version, which does not say what was given', async () => {
    await folder.write('env', 'DATABASE_URL=postgres://theirs\n');
    vi.stubEnv('DATABASE_URL', 'postgres://theirs');
    forgetLocalRun(file);
    expect(given('DATABASE_URL')).toBe('postgres://theirs');
  });
});

describe('the secrets of a local run', () => {
  test('are one of the source default, and a file with one of team-a that stays as it is edited', async () => {
    const own = folder.path('sources.json');
    const first = localSecrets(own, undefined);
    expect(first).toMatchObject({ SOURCES_FILE: own, SIGNING_SECRET: first.SIGNING_SECRETS });
    expect(first.SIGNING_SECRET).toMatch(/^[0-9a-f]{64}$/);
    const { 'team-a': team } = JSON.parse(readFileSync(own, 'utf8')) as Record<string, unknown>;
    expect(team).toEqual({ secrets: [expect.stringMatching(/^[0-9a-f]{64}$/)] });
    expect(statSync(own).mode & 0o777).toBe(0o600);

    await folder.write('sources.json', '{"mine":{"secrets":["a-secret-of-enough-bytes"]}}');
    expect(localSecrets(own, first.SIGNING_SECRETS)).toEqual(first);
    expect(readFileSync(own, 'utf8')).toContain('mine');
  });

  test('are the caller’s where SIGNING_SECRETS or SOURCES_FILE is set', async () => {
    vi.stubEnv('SIGNING_SECRETS', 'the-new-one-of-two, the-old-one');
    vi.stubEnv('SOURCES_FILE', await folder.write('theirs.json', '{}'));
    expect(localSecrets(folder.path('sources.json'), 'one-from-before')).toEqual({
      SIGNING_SECRETS: 'the-new-one-of-two, the-old-one',
      SIGNING_SECRETS_FILE: '',
      SIGNING_SECRET: 'the-new-one-of-two',
      SOURCES_FILE: folder.path('theirs.json'),
    });
    expect(existsSync(folder.path('sources.json'))).toBe(false);
  });

  test('leave SIGNING_SECRETS unset where the file has the source default, which both cannot set', async () => {
    const own = await folder.write('sources.json', '{"default":{"secrets":["of-default-in-the-file"]}}');
    expect(localSecrets(own, 'one-from-before')).toEqual({
      SIGNING_SECRETS: '',
      SIGNING_SECRETS_FILE: '',
      SIGNING_SECRET: 'of-default-in-the-file',
      SOURCES_FILE: own,
    });
  });

  test('stay in the file of SIGNING_SECRETS_FILE, which is named by its whole path', async () => {
    const secrets = await folder.write('secrets', 'the-new-one-of-two, the-old-one\n');
    vi.stubEnv('SIGNING_SECRETS_FILE', relative(process.cwd(), secrets));
    const own = folder.path('sources.json');
    const found = localSecrets(own, 'one-from-before');
    expect(found).toEqual({
      SIGNING_SECRETS: '',
      SIGNING_SECRETS_FILE: secrets,
      SIGNING_SECRET: 'the-new-one-of-two',
      SOURCES_FILE: own,
    });
    await folder.write('secrets', 'the-newest-one-of-all');
    expect(signingSecretIfKnown(found)).toBe('the-newest-one-of-all');
    await folder.write('secrets', '');
    expect(signingSecretIfKnown(found)).toBeUndefined();
  });

  test('are not guessed where the file is broken: it is named', async () => {
    const own = await folder.write('sources.json', '{');
    expect(() => localSecrets(own, undefined)).toThrow(`SOURCES_FILE (${own}) is not JSON`);
  });
});
