import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../src/errors.ts';
import { createSources } from '../../../src/intake/sources.ts';
import { createFolder, type TestFolder } from '../../support/folder.ts';
import { secretOf } from '../../support/records.ts';
import { createTestLog } from '../../support/test-log.ts';

const DEFAULT = 'planted-default-secret-01';
const TEAM = 'planted-secret-of-team-a-1';
const NEXT = 'planted-secret-of-team-a-2';

async function startSources(folder: TestFolder, content: string) {
  const file = await folder.write('sources.json', content);
  const { log, lines } = createTestLog();
  const sources = await createSources({ defaultSecrets: [secretOf(DEFAULT)], file, log });
  return {
    sources,
    lines,
    fingerprints: (name: string) =>
      sources
        .current()
        .secretsOf(name)
        .map(({ fingerprint }) => fingerprint)
        .filter((fingerprint) => fingerprint !== ''),
    [Symbol.dispose]: sources.close,
  };
}

async function faultsOf(content: string): Promise<readonly string[]> {
  await using folder = await createFolder();
  try {
    using started = await startSources(folder, content);
    throw new Error(`accepted ${started.sources.current().names.join()}`);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    if (error.message.includes('planted')) throw new Error('a value is quoted', { cause: error });
    return error.faults;
  }
}

const file = (sources: Record<string, unknown>) => JSON.stringify(sources);

test('the default source comes from the environment and the named ones from the file', async () => {
  await using folder = await createFolder();
  using started = await startSources(folder, file({ 'team-a': { secrets: [TEAM, NEXT] } }));

  expect(started.sources.current().names).toEqual(['default', 'team-a']);
  expect(started.fingerprints('default')).toEqual([secretOf(DEFAULT).fingerprint]);
  expect(started.fingerprints('team-a')).toEqual([secretOf(TEAM).fingerprint, secretOf(NEXT).fingerprint]);
});

describe('at start a broken file is a ConfigError that names places and quotes no value', () => {
  test.for([
    ['no JSON', `{"team-a": {"secrets": ["${TEAM}"`, 'not JSON'],
    ['nothing', '', 'not JSON'],
    ['an array', `["${TEAM}"]`, 'SOURCES_FILE'],
    ['a source without secrets', file({ 'team-a': {} }), 'team-a.secrets'],
    ['an empty list', file({ 'team-a': { secrets: [] } }), 'team-a.secrets'],
    ['a text instead of a list', file({ 'team-a': { secrets: TEAM } }), 'team-a.secrets'],
    ['a text instead of a source', file({ 'team-a': TEAM }), 'team-a'],
    ['another field', file({ 'team-a': { secrets: [TEAM], color: TEAM } }), 'team-a'],
    ['a secret where a field should be', file({ 'team-a': { [TEAM]: true } }), 'team-a'],
    ['a secret where a name should be', file({ [`${TEAM}!`]: { secrets: [TEAM] } }), 'source name'],
    ['an empty secret', file({ 'team-a': { secrets: [TEAM, ''] } }), 'team-a.secrets[1] is empty'],
    ['a short secret', file({ 'team-a': { secrets: ['planted'] } }), 'team-a.secrets[0] is shorter'],
    ['a number', file({ 'team-a': { secrets: [7] } }), 'team-a.secrets'],
    [
      'nine secrets',
      file({ 'team-a': { secrets: Array.from({ length: 9 }, () => TEAM) } }),
      'team-a.secrets',
    ],
    ['the default source', file({ default: { secrets: [TEAM] } }), 'names "default"'],
    ['the name for strangers', file({ unknown: { secrets: [TEAM] } }), 'names "unknown"'],
    ['a dot in a name', file({ 'team.a': { secrets: [TEAM] } }), 'source name'],
    ['a capital in a name', file({ Team: { secrets: [TEAM] } }), 'source name'],
    ['a name of 64 letters', file({ ['a'.repeat(64)]: { secrets: [TEAM] } }), 'source name'],
  ] as const)('%s', async ([, content, fault]) => {
    expect((await faultsOf(content)).join('; ')).toContain(fault);
  });

  test('all its faults at once', async () => {
    const faults = await faultsOf(
      file({ a: { secrets: [''] }, b: { secrets: ['planted', TEAM, 'planted'] } }),
    );

    expect(faults).toHaveLength(3);
  });

  test('one that is not there', async () => {
    await using folder = await createFolder();
    const { log } = createTestLog();

    await expect(
      createSources({ defaultSecrets: [], file: folder.path('none.json'), log }),
    ).rejects.toMatchObject({ code: 'config_invalid', faults: ['SOURCES_FILE cannot be read (ENOENT)'] });
  });
});

describe('read again', () => {
  test('the set is replaced as a whole', async () => {
    await using folder = await createFolder();
    using started = await startSources(
      folder,
      file({ 'team-a': { secrets: [TEAM] }, 'team-b': { secrets: [TEAM] } }),
    );
    const before = started.sources.current();

    await folder.write('sources.json', file({ 'team-a': { secrets: [NEXT] } }));
    await started.sources.reload();

    expect(started.sources.current().names).toEqual(['default', 'team-a']);
    expect(started.fingerprints('team-a')).toEqual([secretOf(NEXT).fingerprint]);
    expect(before.names).toEqual(['default', 'team-a', 'team-b']); // whoever is using it still is
  });

  test.for([
    ['no JSON', `{"team-a": "${NEXT}`],
    ['a short secret', file({ 'team-a': { secrets: ['planted'] } })],
    ['a source too many', file({ default: { secrets: [NEXT] } })],
  ] as const)('a file with %s keeps the old set and logs an error without a secret', async ([, content]) => {
    await using folder = await createFolder();
    using started = await startSources(folder, file({ 'team-a': { secrets: [TEAM] } }));

    await folder.write('sources.json', content);
    await started.sources.reload();

    expect(started.fingerprints('team-a')).toEqual([secretOf(TEAM).fingerprint]);
    expect(started.lines).toEqual([
      expect.objectContaining({ level: 50, msg: expect.stringContaining('stay as they were') }),
    ]);
    expect(JSON.stringify(started.lines)).not.toContain('planted');
  });

  test('of two at once the last one has the last word', async () => {
    await using folder = await createFolder();
    using started = await startSources(folder, file({ 'team-a': { secrets: [TEAM] } }));

    for (let round = 0; round < 20; round++) {
      const secret = `${NEXT}-${round}`;
      const first = started.sources.reload();
      await folder.write('sources.json', file({ 'team-a': { secrets: [secret] } }));
      await Promise.all([first, started.sources.reload()]);
      expect(started.fingerprints('team-a')).toEqual([secretOf(secret).fingerprint]);
    }
  });
});
