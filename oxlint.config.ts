// The linter. Which part of src may import which is in scripts/lint/architecture.ts.

import { defineConfig } from 'oxlint';
import {
  JOINS,
  KINDS,
  NOUNS,
  ROOMS,
  ROOT,
  SANDBOX_COMMANDS,
  TOKENS_COMMAND,
  WITHOUT_DOOR,
} from './scripts/lint/architecture.ts';

type Pattern = { group: string[]; message: string };

/** The rule of a later entry replaces that of an earlier one, so each states all that its files may not import. */
function forbid(files: string | string[], ...patterns: Pattern[]) {
  const rule: ['error', { patterns: Pattern[] }] = [
    'error',
    { patterns: patterns.filter(({ group }) => group.length > 0) },
  ];
  return { files: [files].flat(), rules: { 'no-restricted-imports': rule } };
}

const OF_SERVICE = ['**/config.ts', '**/base/metrics.ts', '**/base/parts.ts'];
const DOORS = 'Rooms are entered by their door, index.ts.';

/** All rooms but those that it may import, and the insides of these. */
function rooms(own: string[], { may, also = [], because, isAlone }: typeof ROOT): Pattern[] {
  const others = Object.keys(ROOMS).filter((room) => room !== 'base' && !own.includes(room));
  const closed = others.filter((room) => !may.includes(room)).map((room) => `**/${room}/**`);
  const entered = others.filter((room) => may.includes(room) && !WITHOUT_DOOR.includes(room));
  return [
    {
      group: [
        ...closed,
        ...(own.includes('cli') ? [] : ['**/service.ts']),
        '**/main.ts',
        ...(isAlone ? OF_SERVICE : []),
      ],
      message: because,
    },
    {
      group: [
        ...entered.flatMap((room) => [`**/${room}/**`, `!**/${room}/index.ts`]),
        ...also.map((path) => `!**/${path}`),
      ],
      message: DOORS,
    },
  ];
}

const CLIENT = { group: ['**/client/**'], message: 'The server does not know its client.' };
const ofKind = (kind: string) => [`${kind}.ts`, `*.${kind}.ts`];

/** What files of this kind may import. Without one they may see all but commands, which no server needs. */
function kinds(kind: string | undefined): Pattern[] {
  const { sees, because } = KINDS[kind ?? ''] ?? {
    sees: Object.keys(KINDS).filter((name) => name !== 'command'),
    because: 'A server needs no command.',
  };
  const unseen = Object.keys(KINDS).filter((name) => !sees.includes(name));
  return [{ group: unseen.flatMap(ofKind).map((name) => `**/${name}`), message: because }];
}

/** `noun` knows the contracts of the others, and the queries of those that it stands on. */
function nouns(noun: string): Pattern[] {
  const standsOn = NOUNS[noun] ?? [];
  return Object.keys(NOUNS)
    .filter((other) => other !== noun)
    .map((other) => {
      const known = standsOn.includes(other) ? ['contract', 'queries'] : ['contract'];
      const open = known.flatMap(ofKind).map((name) => `!**/${other}/${name}`);
      return {
        group: [`**/${other}/**`, ...open],
        message: `Of ${other}, ${noun} knows ${known.join(' and ')} alone.`,
      };
    });
}

/** The rules of a folder of `operators`: of its files without a kind, and of each kind. */
function folder(path: string, others: Pattern[]) {
  const { operators = ROOT } = ROOMS;
  return [
    forbid(
      `src/operators/${path}*.ts`,
      ...rooms(['operators'], operators),
      ...kinds(undefined),
      ...others,
      CLIENT,
    ),
    ...Object.entries(KINDS).map(([kind, rule]) =>
      forbid(
        ofKind(kind).map((name) => `src/operators/${path}${name}`),
        ...rooms(['operators'], rule),
        ...kinds(kind),
        ...others,
        ...(kind === 'command' ? [] : [CLIENT]),
      ),
    ),
  ];
}

export default defineConfig({
  plugins: ['typescript', 'import', 'unicorn', 'oxc', 'vitest', 'promise', 'node'],
  categories: { correctness: 'error', suspicious: 'error' },
  env: { node: true, es2024: true },
  ignorePatterns: ['node_modules', '.local'],
  rules: {
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/await-thenable': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/switch-exhaustiveness-check': 'error',
    'typescript/consistent-type-imports': 'error',
    'import/no-default-export': 'error',
    'import/no-cycle': 'error',
    'no-console': 'error',
    eqeqeq: 'error',
    'typescript/no-unsafe-type-assertion': 'off',
    'consistent-return': 'off',
    'no-unmodified-loop-condition': 'off',
  },
  overrides: [
    { files: ['*.config.ts'], rules: { 'import/no-default-export': 'off' } },
    ...Object.entries(ROOMS)
      .filter(([room]) => room !== 'operators')
      .map(([room, rule]) => forbid(`src/${room}/**`, ...rooms([room], rule))),
    forbid('src/*.ts', ...rooms([], ROOT)),
    forbid('src/sandbox/command/**', ...rooms(['sandbox'], SANDBOX_COMMANDS)),
    ...folder('', []),
    ...folder('kernel/**/', nouns('the kernel')),
    ...Object.keys(NOUNS).flatMap((noun) => folder(`${noun}/**/`, nouns(noun))),
    ...JOINS.flatMap((join) => folder(`${join}/**/`, [])),
    forbid('src/operators/tokens/command.ts', ...rooms([], TOKENS_COMMAND), ...kinds('command')),
    forbid(
      'src/operators/client/**',
      ...rooms(['operators'], { may: [], because: 'The client brings no server along.', isAlone: true }),
      ...kinds('contract'),
    ),
    forbid('scripts/**', {
      group: [
        '**/src/*/**',
        '!**/src/*/index.ts',
        '!**/src/operators/client/index.ts',
        ...[...WITHOUT_DOOR, 'sandbox/command'].map((room) => `!**/src/${room}/**`),
      ],
      message: DOORS,
    }),
    // What every room is given names types of the ledger.
    {
      files: ['src/base/metrics.ts', 'src/base/parts.ts', 'src/main.ts'],
      rules: { 'no-restricted-imports': 'off' },
    },
    {
      files: ['src/**'],
      rules: {
        'no-restricted-properties': [
          'error',
          {
            object: 'process',
            property: 'env',
            message: 'Only the command line hands the environment to config.ts.',
          },
          {
            object: 'JSON',
            property: 'parse',
            message: 'V8 mangles keys with escapes: parseJson of json.ts does not.',
          },
        ],
      },
    },
    {
      files: ['src/operators/kernel/console/assets/**'],
      env: { browser: true, node: false },
      rules: { 'no-restricted-properties': 'off', 'unicorn/require-post-message-target-origin': 'off' },
    },
    { files: ['examples/**'], rules: { 'no-console': 'off' } },
    { files: ['src/main.ts', 'src/base/json/json.ts'], rules: { 'no-restricted-properties': 'off' } },
  ],
});
