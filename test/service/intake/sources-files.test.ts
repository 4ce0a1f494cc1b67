import { mkdir, rename, symlink } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../src/base/errors.ts';
import { createSources } from '../../../src/intake/sources.ts';
import { createFolder, type TestFolder } from '../../support/folder.ts';
import { secretOf } from '../../support/records.ts';
import { createTestLog } from '../../support/test-log.ts';

const DEFAULT = 'planted-default-secret-01';
const TEAM = 'planted-secret-of-team-a-1';
const NEXT = 'planted-secret-of-team-a-2';

/** With the secret of the source `default` in the environment, and `content` as SOURCES_FILE. */
async function startSources(folder: TestFolder, content: string) {
  const file = await folder.write('sources.json', content);
  return startWith({ defaultSecrets: [secretOf(DEFAULT)], file });
}

/** With the files that are given, and nothing in the environment. */
async function startFromFiles(folder: TestFolder, contents: { secrets?: string; sources?: string }) {
  return startWith({
    defaultSecrets: [],
    defaultSecretsFile: contents.secrets && (await folder.write('secrets', contents.secrets)),
    file: contents.sources && (await folder.write('sources.json', contents.sources)),
  });
}

async function startWith(options: Omit<Parameters<typeof createSources>[0], 'log'>) {
  const { log, lines } = createTestLog();
  const sources = await createSources({ ...options, log });
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

test('a secret may have a time by which it should be used no more', async () => {
  await using folder = await createFolder();
  const until = '2026-12-01T00:00:00+01:00';
  using started = await startSources(
    folder,
    file({ 'team-a': { secrets: [TEAM, { secret: NEXT, until }] } }),
  );

  expect(started.fingerprints('team-a')).toEqual([secretOf(TEAM).fingerprint, secretOf(NEXT).fingerprint]);
  expect(started.sources.current().expiring).toEqual([
    { source: 'team-a', fingerprint: secretOf(NEXT).fingerprint, untilMs: Date.UTC(2026, 10, 30, 23) },
  ]);
});

describe('at start a broken file is a ConfigError that names places and quotes no value', () => {
  test.for([
    ['no JSON', `{"team-a": {"secrets": ["${TEAM}"`, 'not JSON'],
    ['nothing', '', 'not JSON'],
    ['an array', `["${TEAM}"]`, 'SOURCES_FILE is not an object of sources'],
    ['a source without secrets', file({ 'team-a': {} }), 'team-a.secrets is missing'],
    ['an empty list', file({ 'team-a': { secrets: [] } }), 'team-a.secrets needs at least one secret'],
    ['a text instead of a list', file({ 'team-a': { secrets: TEAM } }), 'team-a.secrets is not a list'],
    ['a text instead of a source', file({ 'team-a': TEAM }), 'team-a is not { "secrets": [ … ] }'],
    [
      'another field',
      file({ 'team-a': { secrets: [TEAM], color: TEAM } }),
      'team-a has a field that is not "secrets"',
    ],
    ['a secret where a field should be', file({ 'team-a': { [TEAM]: true } }), 'team-a'],
    ['a secret where a name should be', file({ [`${TEAM}!`]: { secrets: [TEAM] } }), 'source name'],
    ['an empty secret', file({ 'team-a': { secrets: [TEAM, ''] } }), 'team-a.secrets[1] is empty'],
    ['a short secret', file({ 'team-a': { secrets: ['planted'] } }), 'team-a.secrets[0] is shorter'],
    ['a number', file({ 'team-a': { secrets: [TEAM, 7] } }), 'team-a.secrets[1] is not a text'],
    [
      'an object without a time',
      file({ 'team-a': { secrets: [TEAM, { secret: NEXT }] } }),
      'team-a.secrets[1] is not a text, or { "secret": …, "until": … }',
    ],
    [
      'a time that is none',
      file({ 'team-a': { secrets: [{ secret: TEAM, until: 'planted' }] } }),
      'team-a.secrets[0] has an "until" that is not a time such as 2026-12-01T00:00:00Z',
    ],
    [
      'a time without a zone',
      file({ 'team-a': { secrets: [{ secret: TEAM, until: '2026-12-01T00:00:00' }] } }),
      'team-a.secrets[0] has an "until"',
    ],
    [
      'a short secret with a time',
      file({ 'team-a': { secrets: [{ secret: 'planted', until: '2026-12-01T00:00:00Z' }] } }),
      'team-a.secrets[0] is shorter',
    ],
    [
      'a source twice',
      `{"team-a": {"secrets": ["${TEAM}"]}, "team\\u002da": {"secrets": ["${NEXT}"]}}`,
      'SOURCES_FILE names "team-a" more than once',
    ],
    [
      'secrets twice',
      `{"team-a": {"secrets": ["${TEAM}"], "secrets": ["${NEXT}"]}}`,
      'a key more than once in an object',
    ],
    ['a secret as a key twice', `{"${TEAM}!": 1, "${TEAM}!": 1}`, 'a key more than once in an object'],
    [
      'nine secrets',
      file({ 'team-a': { secrets: Array.from({ length: 9 }, () => TEAM) } }),
      'team-a.secrets has more than 8 secrets',
    ],
    ['the default source', file({ default: { secrets: [TEAM] } }), 'names "default"'],
    [
      'the name for unknown senders',
      file({ unknown: { secrets: [TEAM] } }),
      'names "unknown", which is reserved for unknown senders',
    ],
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
      expect.objectContaining({ level: 50, msg: expect.stringContaining('the previous sources stay valid') }),
    ]);
    expect(JSON.stringify(started.lines)).not.toContain('planted');
  });

  test('of two reloads at once the last one counts', async () => {
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

const ofTeam = (secret: string) => file({ 'team-a': { secrets: [secret] } });
const fingerprintOf = (text: string) => secretOf(text).fingerprint;

describe('the file of the default source', () => {
  test('is read again: its secrets are replaced, and those of SOURCES_FILE stay', async () => {
    await using folder = await createFolder();
    const named = file({ 'team-a': { secrets: [TEAM] } });
    using started = await startFromFiles(folder, { secrets: `${DEFAULT}\n`, sources: named });
    expect(started.fingerprints('default')).toEqual([fingerprintOf(DEFAULT)]);

    await folder.write('secrets', `${NEXT}, ${DEFAULT}\n`);
    await started.sources.reload();

    expect(started.fingerprints('default')).toEqual([fingerprintOf(NEXT), fingerprintOf(DEFAULT)]);
    expect(started.fingerprints('team-a')).toEqual([fingerprintOf(TEAM)]);
    expect(started.lines).toEqual([
      expect.objectContaining({
        level: 30,
        msg: 'sources loaded',
        files: ['SIGNING_SECRETS_FILE', 'SOURCES_FILE'],
        sources: ['default', 'team-a'],
      }),
    ]);
  });

  test('broken while the other one stays as it is: an error, and nothing is said to be loaded', async () => {
    await using folder = await createFolder();
    using started = await startFromFiles(folder, { secrets: DEFAULT, sources: ofTeam(TEAM) });

    await folder.write('secrets', 'planted'); // the service sees it by itself
    await expect.poll(() => started.lines).toHaveLength(1);
    await folder.write('sources.json', ofTeam(NEXT));
    await expect.poll(() => started.lines).toHaveLength(2);

    expect(started.lines).toEqual([
      expect.objectContaining({
        level: 50,
        faults: ['SIGNING_SECRETS_FILE entry 1 is shorter than 16 bytes'],
      }),
      expect.objectContaining({ level: 30, msg: 'sources loaded', files: ['SOURCES_FILE'] }),
    ]);
  });

  test('broken at a reload that was asked for: only the other one is said to be loaded', async () => {
    await using folder = await createFolder();
    using started = await startFromFiles(folder, { secrets: DEFAULT, sources: ofTeam(TEAM) });

    await folder.write('secrets', 'planted');
    await started.sources.reload();

    expect(started.lines.find(({ level }) => level === 30)).toMatchObject({ files: ['SOURCES_FILE'] });
  });

  test.for([
    ['nothing', '\n', 'SIGNING_SECRETS_FILE entry 1 is empty'],
    ['a short secret', `${DEFAULT},planted`, 'SIGNING_SECRETS_FILE entry 2 is shorter than 16 bytes'],
    ['nine secrets', Array.from({ length: 9 }, () => TEAM).join(), 'has more than 8 entries'],
    ['a secret on each line', `${TEAM}\n${NEXT}\n`, 'entry 1 has a line break in it'],
    ['JSON', `["${TEAM}", "${NEXT}"]`, 'is JSON, and takes only secrets'],
    ['quotes', `"${TEAM}"\n`, 'entry 1 has quotes around it'],
  ] as const)('with %s in it keeps its old secrets, by its name in the log', async ([, content, fault]) => {
    await using folder = await createFolder();
    using started = await startFromFiles(folder, { secrets: DEFAULT });

    await folder.write('secrets', content);
    await started.sources.reload();

    expect(started.fingerprints('default')).toEqual([fingerprintOf(DEFAULT)]);
    expect(started.lines).toEqual([
      expect.objectContaining({
        level: 50,
        msg: 'SIGNING_SECRETS_FILE is broken, the previous sources stay valid',
      }),
    ]);
    expect(JSON.stringify(started.lines)).toContain(fault);
    expect(JSON.stringify(started.lines)).not.toContain('planted');
  });

  test('while it is broken or away, a change of SOURCES_FILE counts, and the other way round', async () => {
    await using folder = await createFolder();
    using started = await startFromFiles(folder, { secrets: DEFAULT, sources: ofTeam(TEAM) });

    await rename(folder.path('secrets'), folder.path('away'));
    await folder.write('sources.json', ofTeam(NEXT));
    await started.sources.reload();
    expect(started.fingerprints('default')).toEqual([fingerprintOf(DEFAULT)]);
    expect(started.fingerprints('team-a')).toEqual([fingerprintOf(NEXT)]);

    await folder.write('secrets', NEXT);
    await folder.write('sources.json', 'no JSON');
    await started.sources.reload();
    expect(started.fingerprints('default')).toEqual([fingerprintOf(NEXT)]);
    expect(started.fingerprints('team-a')).toEqual([fingerprintOf(NEXT)]);

    expect(started.lines.filter(({ level }) => level === 50).map(({ msg }) => msg)).toEqual([
      'SIGNING_SECRETS_FILE is broken, the previous sources stay valid',
      'SOURCES_FILE is broken, the previous sources stay valid',
    ]);
  });

  test('broken at start is a ConfigError, with the faults of SOURCES_FILE beside it', async () => {
    await using folder = await createFolder();

    await expect(startFromFiles(folder, { secrets: 'planted', sources: 'no JSON' })).rejects.toMatchObject({
      faults: ['SIGNING_SECRETS_FILE entry 1 is shorter than 16 bytes', 'SOURCES_FILE is not JSON'],
    });
  });

  test('a change just after the file was read at start is seen, too', async () => {
    await using folder = await createFolder();
    using started = await startFromFiles(folder, { secrets: DEFAULT, sources: ofTeam(TEAM) });

    await folder.write('secrets', NEXT);

    await expect.poll(() => started.fingerprints('default')).toEqual([fingerprintOf(NEXT)]);
  });

  test.for(['secrets', 'sources.json'])(
    'a swap of symbolic links is seen, as Kubernetes makes it: %s',
    async (name) => {
      await using folder = await createFolder();
      const content = (secret: string) =>
        name === 'secrets' ? secret : file({ default: { secrets: [secret] } });
      // The file is a link into `..data`, which is a link to the folder of the present version.
      for (const [version, secret] of [
        ['v1', TEAM],
        ['v2', NEXT],
      ] as const) {
        await mkdir(folder.path(version));
        await folder.write(`${version}/${name}`, content(secret));
        await symlink(version, folder.path(`..data-${version}`));
      }
      await rename(folder.path('..data-v1'), folder.path('..data'));
      await symlink(`..data/${name}`, folder.path(name));
      const path = folder.path(name);
      using started = await startWith({
        defaultSecrets: [],
        ...(name === 'secrets' ? { defaultSecretsFile: path, file: undefined } : { file: path }),
      });
      expect(started.fingerprints('default')).toEqual([fingerprintOf(TEAM)]);

      await rename(folder.path('..data-v2'), folder.path('..data'));

      await expect.poll(() => started.fingerprints('default')).toEqual([fingerprintOf(NEXT)]);
    },
  );
});

const warnings = (lines: readonly Record<string, unknown>[]) => lines.filter(({ level }) => level === 40);

describe('two sources with the same secret', () => {
  test('are accepted with a warning that names neither, at start and when they are read again', async () => {
    await using folder = await createFolder();
    using started = await startSources(folder, ofTeam(DEFAULT));

    expect(warnings(started.lines)).toEqual([
      expect.objectContaining({ msg: expect.stringContaining('two sources have the same secret') }),
    ]);
    expect(JSON.stringify(started.lines)).not.toMatch(/planted|team-a/);
    await started.sources.reload();
    expect(warnings(started.lines)).toHaveLength(2);
  });

  test('are others than one source that has a secret twice', async () => {
    await using folder = await createFolder();
    using started = await startSources(folder, file({ 'team-a': { secrets: [TEAM, TEAM] } }));

    expect(started.lines).toEqual([]);
  });
});

describe('the default source in SOURCES_FILE', () => {
  const both = file({ default: { secrets: [DEFAULT] }, 'team-a': { secrets: [TEAM] } });

  test('is one where nothing else sets it, and is rotated with the others', async () => {
    await using folder = await createFolder();
    using started = await startFromFiles(folder, { sources: both });
    expect(started.sources.current().names).toEqual(['default', 'team-a']);

    await folder.write('sources.json', file({ default: { secrets: [NEXT] } }));
    await started.sources.reload();

    expect(started.fingerprints('default')).toEqual([fingerprintOf(NEXT)]);
    expect(started.sources.current().names).toEqual(['default']);
  });

  test('is refused beside the variable that sets it, by the name of that variable', async () => {
    await using folder = await createFolder();

    expect(await faultsOf(both)).toEqual([
      'SOURCES_FILE names "default", which SIGNING_SECRETS sets already: keep one',
    ]);
    await expect(startFromFiles(folder, { secrets: TEAM, sources: both })).rejects.toMatchObject({
      faults: ['SOURCES_FILE names "default", which SIGNING_SECRETS_FILE sets already: keep one'],
    });
  });
});
