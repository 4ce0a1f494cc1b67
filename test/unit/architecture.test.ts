// The page on architecture says which room may import which; the linter's rules are held against it, the names of files in
// all documents against what is there, and the cited sections of the service's interface against their page.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import {
  JOINS,
  KINDS,
  NOUNS,
  type Room,
  ROOMS,
  ROOT,
  WITHOUT_DOOR,
} from '../../scripts/lint/architecture.ts';

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const read = (path: string) => readFileSync(at(path), 'utf8');

const rooms = readdirSync(at('src'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** In backticks. */
const names = (text = '') => Array.from(text.matchAll(/`([\w-]+)`/g), ([, name = '']) => name).toSorted();

/** Of each room, those that the page lets it import. */
function drawn(): Map<string, string[]> {
  const rows = read('docs/architecture.md').matchAll(/^\| `src\/([\w*.]+)` \| ([^|]*) \|[^|]*\|$/gm);
  return new Map(Array.from(rows, ([, room = '', others]) => [room, names(others)]));
}

test('the page draws all rooms, and what each may import is what the linter enforces', () => {
  const enforced = Object.entries<Room>({ ...ROOMS, '*.ts': ROOT });
  expect(Object.keys(ROOMS).toSorted()).toEqual(rooms.toSorted());
  expect(drawn()).toEqual(new Map(enforced.map(([room, { may }]) => [room, may.toSorted()])));
});

test('the page draws the kinds of files, the nouns and what joins them as the linter has them', () => {
  const page = read('docs/architecture.md');
  const rows = page.matchAll(/^\| `(\w+)` \| ([^|]*) \| ([^|]*) \|[^|]*\|$/gm);
  const kinds = Array.from(rows, ([, kind = '', sees, may]) => [
    kind,
    { sees: names(sees), may: names(may) },
  ]);
  expect(Object.fromEntries(kinds)).toEqual(
    Object.fromEntries(
      Object.entries(KINDS).map(([kind, { sees, may }]) => [
        kind,
        { sees: sees.toSorted(), may: may.toSorted() },
      ]),
    ),
  );
  const joins = /may know all of them:([^.]*)\./s.exec(page)?.[1];
  expect(names(joins)).toEqual(JOINS.toSorted());
  const stand = Object.entries(NOUNS).filter(([, others]) => others.length > 0);
  const told = /those that it stands on: (.*?) What joins/s.exec(page)?.[1];
  expect(new Set(names(told))).toEqual(new Set(stand.flat(2)));
});

test('a room has a door, unless its files are shared one by one', () => {
  const withoutDoor = rooms.filter((room) => !existsSync(at(`src/${room}/index.ts`)));
  expect(withoutDoor.toSorted()).toEqual(WITHOUT_DOOR.toSorted());
});

test('the linter knows all nouns, and nearly every file of theirs says by its name what it may touch', () => {
  const folders = readdirSync(at('src/operators'), { withFileTypes: true }).filter((each) =>
    each.isDirectory(),
  );
  const known = [...Object.keys(NOUNS), ...JOINS, 'kernel', 'client'];
  expect(folders.map(({ name }) => name).toSorted()).toEqual(known.toSorted());
  const kind = new RegExp(`(?:^|[./])(?:${Object.keys(KINDS).join('|')})\\.ts$`);
  const others = [...Object.keys(NOUNS), ...JOINS].flatMap((noun) =>
    readdirSync(at(`src/operators/${noun}`), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !kind.test(name))
      .map((name) => `${noun}/${name}`),
  );
  expect(others.toSorted()).toEqual([
    'live/listeners.ts',
    'live/stream.ts',
    ...['failure-pause', 'feeder', 'rate-cap', 'slices', 'turns'].map((name) => `replays/feeder/${name}.ts`),
  ]);
});

test('commands have nothing of their process but what their io has', () => {
  const commands = readdirSync(at('src'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    /^(?:cli|terminal|tools|sandbox\/command)\/.*\.ts$|(?:^|[./])command\.ts$/.test(name),
  );
  const users = commands.filter((name) => /\bprocess\.\w/.test(codeOf(`src/${name}`)));
  expect(users.toSorted()).toEqual(['cli/collector.ts', 'cli/serve.ts']); // `serve` is a process
});

const isComment = (line: string) => /^\s*(?:\/\/|\*|\/\*)/.test(line);
const codeOf = (path: string) =>
  read(path)
    .split('\n')
    .filter((line) => !isComment(line))
    .join('\n');

/** Of the source, only comments: what an import names, the compiler checks. */
const commentsOf = (path: string) => read(path).split('\n').filter(isComment).join('\n');

test('every file of ours that a document or a comment names is there', () => {
  const sources = readdirSync(at('src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `src/${name}`);
  const documents = [
    'README.md',
    'CONTRIBUTING.md',
    'bench/README.md',
    'contracts/README.md',
    'Dockerfile',
    ...readdirSync(at('docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${name}`),
  ];
  const folders = [
    ...rooms,
    'src',
    'test',
    'bench',
    'contracts',
    'examples',
    'scripts',
    'migrations',
    'docs',
  ].join('|');
  const missing = [...documents, ...sources].flatMap((document) =>
    Array.from(
      (document.endsWith('.ts') ? commentsOf(document) : read(document)).matchAll(
        new RegExp(`\\b(?:${folders})/[\\w/.-]+\\.(?:ts|mjs|sql|md|json|svg)`, 'g'),
      ),
    )
      .map(([path]) => path)
      .filter((path) => !existsSync(at(path)) && !existsSync(at(`src/${path}`)))
      .map((path) => `${document}: ${path}`),
  );
  expect(missing).toEqual([]);
});

test('every section of the service’s interface that a comment cites is on its page', () => {
  const page = read('docs/service-interface.md');
  const sections = new Set(
    Array.from(page.matchAll(/^#{2,3} (\d+(?:\.\d+)?)\.? /gm), ([, number]) => number),
  );
  const cited = ['src', 'test', 'bench', 'migrations', 'scripts'].flatMap((folder) =>
    readdirSync(at(folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .flatMap((name) => {
        const text = commentsOf(`${folder}/${name}`).replaceAll(/\s*\n\s*(?:\/\/|\*) /g, ' ');
        const numbers = text.matchAll(/service interface (\d[\d.]*\d|\d)(?: and (\d[\d.]*\d|\d))?/g);
        return Array.from(numbers, ([, ...found]) => found.filter(Boolean)).flatMap((found) =>
          found.map((number) => ({ place: `${folder}/${name}`, number })),
        );
      }),
  );
  expect(sections.size).toBeGreaterThan(10);
  expect(cited.length).toBeGreaterThan(30);
  expect(cited.filter(({ number }) => !sections.has(number))).toEqual([]);
});

test('no comment cites a specification that is not in the project', () => {
  const citing = ['src', 'test', 'bench', 'migrations', 'scripts'].flatMap((folder) =>
    readdirSync(at(folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name}`)
      .filter((name) => /\bspec \d/.test(commentsOf(name))),
  );
  expect(citing).toEqual([]);
});
