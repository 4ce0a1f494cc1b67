// The linter. Which part of src may import which is in scripts/lint/architecture.ts.

import { defineConfig } from 'oxlint';
import {
  JOINS,
  KINDS,
  NOUNS,
  type Room,
  ROOMS,
  ROOT,
  SANDBOX_COMMANDS,
  TOKENS_COMMAND,
  WITHOUT_DOOR,
} from './scripts/lint/architecture.ts';

type Pattern = { group: string[]; importNames?: string[]; message: string };

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

/** Forbids all rooms but those that it may import, and the insides of these. */
function forbiddenRooms(own: string[], { may, also = [], because, isAlone }: Room): Pattern[] {
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

/** Files of these kinds are used without the server: of the kernel they know files with a kind alone. */
const WITHOUT_SERVER = ['contract', 'command'];

/** Forbids the kinds that this one may not see. A file without a kind may see all but commands, which no server needs. */
function forbiddenKinds(kind: string | undefined): Pattern[] {
  const { sees, because } = KINDS[kind ?? ''] ?? {
    sees: Object.keys(KINDS).filter((name) => name !== 'command'),
    because: 'A server needs no command.',
  };
  const unseen = Object.keys(KINDS).filter((name) => !sees.includes(name));
  const isWithoutServer = WITHOUT_SERVER.includes(kind ?? '');
  return [
    { group: unseen.flatMap(ofKind).map((name) => `**/${name}`), message: because },
    {
      group: isWithoutServer ? ['**/kernel/**', ...sees.map((name) => `!**/*.${name}.ts`)] : [],
      message: because,
    },
    {
      group: kind === 'queries' || kind === undefined ? [] : ['kysely'],
      importNames: ['sql'],
      message: 'Only queries have SQL.',
    },
  ];
}

/** Forbids all of other nouns but their contracts, and the queries of those that it stands on. */
function forbiddenNouns(noun: string): Pattern[] {
  const standsOn = NOUNS[noun] ?? [];
  const others = [...Object.keys(NOUNS), ...JOINS].filter((other) => other !== noun);
  const open = others.flatMap((other) =>
    (standsOn.includes(other) ? ['contract', 'queries'] : ['contract'])
      .flatMap(ofKind)
      .map((name) => `!**/${other}/${name}`),
  );
  const known = ['contracts', ...standsOn.map((other) => `the queries of ${other}`)].join(' and ');
  return [
    {
      group: [...others.map((other) => `**/${other}/**`), ...open],
      message: `Of other nouns, ${noun} knows ${known} alone.`,
    },
  ];
}

/** The rules of a folder of `operators`: of its files without a kind, and of each kind. */
function folder(path: string, others: Pattern[]) {
  return [
    forbid(
      `src/operators/${path}*.ts`,
      ...forbiddenRooms(['operators'], ROOMS.operators),
      ...forbiddenKinds(undefined),
      ...others,
      CLIENT,
    ),
    ...Object.entries(KINDS).map(([kind, rule]) =>
      forbid(
        ofKind(kind).map((name) => `src/operators/${path}${name}`),
        ...forbiddenRooms(['operators'], rule),
        ...forbiddenKinds(kind),
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
      .map(([room, rule]) => forbid(`src/${room}/**`, ...forbiddenRooms([room], rule))),
    forbid('src/*.ts', ...forbiddenRooms([], ROOT)),
    forbid('src/sandbox/command/**', ...forbiddenRooms(['sandbox'], SANDBOX_COMMANDS)),
    ...folder('', []),
    ...folder('kernel/**/', forbiddenNouns('the kernel')),
    ...Object.keys(NOUNS).flatMap((noun) => folder(`${noun}/**/`, forbiddenNouns(noun))),
    ...JOINS.flatMap((join) => folder(`${join}/**/`, [])),
    forbid(
      'src/operators/tokens/command.ts',
      ...forbiddenRooms([], TOKENS_COMMAND),
      ...forbiddenKinds('command'),
      ...forbiddenNouns('tokens'),
    ),
    forbid(
      'src/operators/client/**',
      ...forbiddenRooms(['operators'], {
        may: [],
        because: 'The client brings no server along.',
        isAlone: true,
      }),
      ...forbiddenKinds('contract'),
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
      files: ['src/base/parts.ts', 'src/main.ts'],
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
