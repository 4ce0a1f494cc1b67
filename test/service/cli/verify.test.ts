// `tallyhook verify` as a team uses it, without a service.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '../../support/cli.ts';
import { createFolder, type TestFolder } from '../../support/folder.ts';
import { sign } from '../../support/sender.ts';

const SECRET = 'planted-signing-secret-0001';
const OTHER = 'planted-signing-secret-0002';
const BODY = '{"job_id": "job_1"}';
const hex = sign(BODY, SECRET).slice('sha256='.length);

let folder: TestFolder;
beforeAll(async () => {
  folder = await createFolder();
  await folder.write('secret', `${SECRET}\n`);
  await folder.write('both', `${OTHER}, ${SECRET}\n`);
  await folder.write('other', OTHER);
  await folder.write('lines', `${OTHER}\r\n\n${SECRET}\n`);
  await folder.write('list', `${OTHER},\n${SECRET}\n`);
  await folder.write('short', 'planted');
  await folder.write('quoted', `"${SECRET}"\n`);
  await folder.write('sources.json', JSON.stringify({ 'team-a': { secrets: [SECRET] } }));
  await folder.write('body.json', BODY);
});
afterAll(() => folder[Symbol.asyncDispose]());

/** The files that `args` name are those of the folder. `input`: what stands on standard input. */
async function verify(args: readonly string[], input = '', env: Readonly<Record<string, string>> = {}) {
  const inFolder = args.map((arg, at) => (isFile(arg, args[at - 1]) ? folder.path(arg) : arg));
  const { code, stdout, stderr } = await runCommand(['verify', ...inFolder], { env, input });
  if (`${stdout}${stderr}`.includes('planted')) throw new Error('a secret is shown');
  return { code, stdout: withoutFolder(stdout), stderr: withoutFolder(stderr) };
}

const withoutFolder = (text: string) => text.replaceAll(`${folder.path('.')}/`, '');

const isFile = (arg: string, before = '') => before.endsWith('-file') && arg !== '-';

const withBody = (secretFiles: readonly string[], signature: string) => [
  ...secretFiles.flatMap((file) => ['--secret-file', file]),
  '--body-file',
  'body.json',
  '--signature',
  signature,
];

const HINT =
  'If the service still refuses it, the body was changed on the way. With curl use --data-binary, not -d.\n';

test('a right signature is exit code 0, of any of the secrets that are given', async () => {
  for (const files of [['secret'], ['both'], ['list'], ['other', 'secret']]) {
    const { code, stdout } = await verify(withBody(files, `sha256=${hex}`));
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(
        new RegExp(`^matches: signed with the secret in (?:secret|(?:both|list) \\(entry 2\\))\\n${HINT}$`),
      ),
    });
  }
});

test('of a file with several lines each line is tried, and the file is said to be wrong', async () => {
  const { code, stdout } = await verify(withBody(['lines'], `sha256=${hex}`));

  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: [
      'lines has several lines: each is tried, but the service refuses such a file; separate secrets by commas',
      'matches: signed with the secret in lines (entry 2)',
      HINT,
    ].join('\n'),
  });
});

describe('without --secret-file', async () => {
  const args = withBody([], `sha256=${hex}`);

  test('the secret is the one that send signs with', async () => {
    expect(await verify(args, '', { SIGNING_SECRETS: `${SECRET},${OTHER}` })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('signed with the secret in the environment (source "default")'),
    });
    const env = { SOURCES_FILE: folder.path('sources.json') };
    expect(await verify([...args, '--source', 'team-a'], '', env)).toMatchObject({ code: 0 });
    expect(await verify(args, '', { SIGNING_SECRETS: OTHER })).toMatchObject({ code: 1 });
  });

  test('and without such a secret it is wrong use', async () => {
    const env = { SOURCES_FILE: folder.path('sources.json') };

    expect(await verify([...args, '--source', 'team-b'], '', env)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--secret-file is missing, and there is no source "team-b"'),
    });
    expect(await verify([...withBody(['secret'], hex), '--source', 'team-a'], '', env)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('leave out --secret-file'),
    });
  });
});

test('a header of another name is told as such, in place of its value', async () => {
  for (const header of [`X-Hub-Signature-256: sha256=${hex}`, `x-signature:sha256=${hex}`]) {
    expect(await verify(withBody(['secret'], header))).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(
        /^does not match\n- the header has another name: the service reads X-Service-Signature\n- apart from that it is right, with the secret in secret\n/,
      ),
    });
  }
  expect((await verify(withBody(['secret'], `sha256:${hex}`))).stdout).toContain(
    '- the signature does not begin with "sha256="\n- apart from that it is right',
  );
});

test('all faults of the form are told at once', async () => {
  expect((await verify(withBody(['secret'], `SHA256=${hex.toUpperCase()}`))).stdout).toContain(
    [
      'does not match',
      '- "sha256=" is not in lower case',
      '- the hex digits are not in lower case',
      '- apart from that it is right, with the secret in secret',
    ].join('\n'),
  );
});

test('the whole header line is taken, and the body from standard input', async () => {
  const args = [
    '--secret-file',
    'secret',
    '--body-file',
    '-',
    '--signature',
    `X-Service-Signature: sha256=${hex}`,
  ];

  expect(await verify(args, BODY)).toMatchObject({ code: 0 });
  expect(await verify(args, `${BODY}\n`)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('- it was signed without the final newline of the body\n'),
  });
});

test('a wrong one is exit code 1, with what is wrong with it and the header that is expected', async () => {
  expect(await verify(withBody(['secret'], Buffer.from(hex, 'hex').toString('base64')))).toEqual({
    code: 1,
    stderr: '',
    stdout: [
      'does not match',
      '- the signature has no "sha256=" before its digits',
      '- the signature is base64, not hex',
      '- apart from that it is right, with the secret in secret',
      'expected with the secret in secret:',
      `  X-Service-Signature: sha256=${hex}`,
      '',
    ].join('\n'),
  });
  expect((await verify(withBody(['secret', 'other'], sign(`${BODY}\n`, OTHER)))).stdout).toBe(
    [
      'does not match',
      '- it was signed with a final newline that the body does not have',
      '- the secret in other was used',
      'expected with the secret in secret:',
      `  X-Service-Signature: sha256=${hex}`,
      'expected with the secret in other:',
      `  X-Service-Signature: ${sign(BODY, OTHER)}`,
      '',
    ].join('\n'),
  );
  expect((await verify(withBody(['secret'], sign('other', OTHER)))).stdout).toContain(
    '- no likely mistake explains it: other bytes were signed, or another secret was used\n',
  );
});

test.for([
  [[], '--body-file is missing'],
  [['--secret-file', 'secret'], '--body-file is missing'],
  [['--secret-file', 'secret', '--body-file', 'body.json'], '--signature is missing'],
  [withBody(['none'], 'x'), '--secret-file: there is no file '],
  [
    withBody(['quoted'], 'x'),
    '--secret-file entry 1 has quotes around it: write it without them: the service takes no such secret',
  ],
  [
    withBody(['short'], 'x'),
    '--secret-file entry 1 is shorter than 16 bytes: the service takes no such secret',
  ],
  [withBody(['sources.json'], 'x'), 'not a JSON file such as SOURCES_FILE'],
] as const)('wrong use is exit code 2: %j', async ([args, message]) => {
  const { code, stdout, stderr } = await verify(args);

  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(message);
});
