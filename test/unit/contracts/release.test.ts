// How a form is released: what is new gets a file of its own, and what was released is never changed.

import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CONTRACTS, leftOver } from '../../../scripts/contracts/documents.ts';
import { breaksOf, filesOf, type FrozenForm, makeFile, toText } from '../../../scripts/contracts/forms.ts';
import {
  faultsOf,
  majorVersions,
  readReleased,
  release,
  unreleased,
} from '../../../scripts/contracts/released.ts';
import { dataForm, type Form } from '../../../src/event/index.ts';
import { createFolder } from '../../support/folder.ts';

type Fields = Readonly<Record<string, object>>;

async function copyOfContracts() {
  const folder = await createFolder();
  cpSync(CONTRACTS, folder.path('contracts'), { recursive: true });
  return {
    ...folder,
    contracts: folder.path('contracts'),
    at: (path: string) => folder.path(`contracts/${path}`),
  };
}

type Progress = Form & { readonly properties: Fields; readonly required: readonly string[] };

/** The form of progress with other fields. */
const changed = (change: (form: Progress) => object): FrozenForm => ({
  name: 'events/progress',
  direction: 'readers',
  make: () => {
    const form = dataForm('progress') as Progress;
    return { ...form, ...change(form) };
  },
});
const withField = changed(({ properties }) => ({
  properties: { ...properties, planted: { type: 'string' } },
}));

/** The form of today, whichever version it has. */
const newest = filesOf(withField, CONTRACTS).at(-1);
if (newest === undefined) throw new Error('no file');
const laterPath = (count: number) => `events/progress.v${newest.major}.${newest.minor + count}.json`;

const isReleased = () => true;

test('a form that only explains more, or in another order, is no new form', () => {
  const explained = changed(({ properties, required }) => ({
    title: 'Another title',
    properties: { ...properties, status: { ...properties['status'], description: 'new words' } },
    required: required.toReversed(),
  }));
  const { path, text } = makeFile(explained, CONTRACTS, isReleased);
  expect(path).toBe(newest.path);
  expect(text).toBe(readFileSync(`${CONTRACTS}/${path}`, 'utf8'));
});

test('a new optional field makes the next file of the major version, which breaks nobody', () => {
  const made = makeFile(withField, CONTRACTS, isReleased);
  expect(made.path).toBe(laterPath(1));
  const version = `${newest.major}.${newest.minor + 1}`;
  expect(JSON.parse(made.text)).toMatchObject({
    $id: `urn:tallyhook:schema:conversion.job.progress:${version}`,
  });
  expect(breaksOf(withField, [...filesOf(withField, CONTRACTS), made])).toEqual([]);
});

test('a break is named with the file, the place and the rule, against all earlier forms', () => {
  const second = makeFile(withField, CONTRACTS, isReleased);
  const wider = changed(({ properties }) => ({
    properties: { ...properties, progress_percentage: { type: 'integer', minimum: 0, maximum: 200 } },
  }));
  const third = {
    ...makeFile(wider, CONTRACTS, isReleased),
    path: laterPath(2),
    minor: newest.minor + 2,
  };

  expect(breaksOf(wider, [newest, second, third])).toEqual([
    `${laterPath(2)} breaks readers of ${newest.path} at /progress_percentage: range loosened (maximum was 100, is 200)`,
    `${laterPath(2)} breaks readers of ${laterPath(1)} at /progress_percentage: range loosened (maximum was 100, is 200)`,
    `${laterPath(2)} breaks readers of ${laterPath(1)} at /planted: field removed (the field was {"type":"string"}, is none)`,
  ]);
});

test('a new major version is a file of its own, which may break', () => {
  const major = newest.major + 1;
  const next = changed(() => ({
    $id: `urn:tallyhook:schema:conversion.job.progress:${major}`,
    properties: {},
  }));
  const made = makeFile(next, CONTRACTS, isReleased);
  expect(made.path).toBe(`events/progress.v${major}.json`);
  expect(breaksOf(next, [...filesOf(next, CONTRACTS), made])).toEqual([]);
});

test('only the first form of a new major version counts as one', () => {
  const paths = [
    'events/new.v1.json',
    'events/progress.v1.12.json',
    'events/progress.v2.json',
    'events/a.v11.json',
  ];
  expect(majorVersions([...paths, 'examples/events/progress.json', 'types/released/events.2.ts'])).toEqual([
    'events/progress.v2.json',
    'events/a.v11.json',
  ]);
});

test('until it is released a file is made anew, and from then on it is not', async () => {
  await using copy = await copyOfContracts();
  const { path, text } = makeFile(withField, copy.contracts, isReleased);
  writeFileSync(copy.at(path), text);
  expect(unreleased(copy.contracts)).toEqual([path]);
  expect(leftOver(copy.contracts)).toEqual([path]);
  const other = changed(({ properties }) => ({ properties: { ...properties, another: { type: 'string' } } }));
  const record = () => readReleased(copy.contracts);
  expect(makeFile(other, copy.contracts, (name) => name in record()).path).toBe(path);

  release(copy.contracts, unreleased(copy.contracts));

  expect(unreleased(copy.contracts)).toEqual([]);
  expect(leftOver(copy.contracts)).toEqual([]);
  expect(makeFile(other, copy.contracts, (name) => name in record()).path).toBe(laterPath(2));
  expect(record()).toMatchObject(readReleased(CONTRACTS));
});

test.for(['events/completed.v1.json', 'examples/events/progress.json', 'types/released/events.1.ts'])(
  'a change to %s is found, and so is its removal, and a release does not hide it',
  async (path) => {
    await using copy = await copyOfContracts();
    expect(faultsOf(copy.contracts)).toEqual([]);
    writeFileSync(copy.at(path), `${readFileSync(copy.at(path), 'utf8')} `);
    release(copy.contracts, unreleased(copy.contracts));
    expect(faultsOf(copy.contracts)).toEqual([`${path} was changed`]);
    rmSync(copy.at(path));
    release(copy.contracts, unreleased(copy.contracts));
    expect(faultsOf(copy.contracts)).toEqual([`${path} was removed`]);
  },
);

test('a new example must be released', async () => {
  await using copy = await copyOfContracts();
  writeFileSync(copy.at('examples/events/another.json'), toText({}));
  expect(unreleased(copy.contracts)).toEqual(['examples/events/another.json']);
});
