// The page on architecture says which room may import which; the linter's rules are held against it, the names of files in
// all documents against what is there, and the cited sections of the service's interface against their page.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

type Override = {
  readonly files: readonly string[];
  readonly rules: {
    readonly 'no-restricted-imports'?:
      | 'off'
      | [string, { patterns: [{ group: string[] }, { group: string[] }?] }];
  };
};

const at = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const read = (path: string) => readFileSync(at(path), 'utf8');

const rooms = readdirSync(at('src'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

/** Of each room, those that the page lets it import. */
function drawn(): Map<string, string[]> {
  const rows = read('docs/architecture.md').matchAll(/^\| `src\/([\w*.]+)` \| ([^|]*) \|[^|]*\|$/gm);
  return new Map(
    Array.from(rows, ([, room = '', others = '']) => [
      room,
      Array.from(others.matchAll(/`(\w+)`/g), ([, name = '']) => name).toSorted(),
    ]),
  );
}

/** Of each room, what the linter forbids it: other rooms, and all but the doors of the rest. */
function rules(): { readonly room: string; readonly rooms: string[]; readonly insides: string[] }[] {
  const { overrides } = JSON.parse(read('.oxlintrc.json')) as { overrides: Override[] };
  return overrides.flatMap(({ files: [files = ''], rules: { 'no-restricted-imports': rule } }) => {
    const room = /^src\/(\w+|\*\.ts)(?:\/\*\*)?$/.exec(files)?.[1];
    if (!Array.isArray(rule) || room === undefined) return [];
    const [forbidden, insides] = rule[1].patterns;
    return [{ room, rooms: forbidden.group, insides: insides?.group ?? [] }];
  });
}

/** Of each room, those that the linter lets it import. */
function enforced(): Map<string, string[]> {
  return new Map(
    rules().map(({ room, rooms: forbidden }) => [
      room,
      rooms.filter((name) => name !== room && !forbidden.includes(`**/${name}/**`)).toSorted(),
    ]),
  );
}

test('the page draws all rooms, and what each may import is what the linter enforces', () => {
  expect([...drawn().keys()].toSorted()).toEqual(['*.ts', ...rooms].toSorted());
  expect(drawn()).toEqual(enforced());
});

test('a room is entered by its door alone', () => {
  for (const { room, insides } of rules()) {
    for (const other of enforced().get(room) ?? []) {
      expect(insides, `${room} may open the door of ${other}`).toContain(`!**/${other}/index.ts`);
      expect(insides, `${room} sees nothing else of ${other}`).toContain(`**/${other}/**`);
    }
  }
  const withoutDoor = rooms.filter((room) => room !== 'cli' && !existsSync(at(`src/${room}/index.ts`)));
  expect(withoutDoor).toEqual([]);
});

test('commands have nothing of their process but what their io has', () => {
  const users = readdirSync(at('src/cli')).filter((name) => /\bprocess\.\w/.test(codeOf(`src/cli/${name}`)));
  expect(users.toSorted()).toEqual(['collector.ts', 'serve.ts']); // `serve` is a process
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
