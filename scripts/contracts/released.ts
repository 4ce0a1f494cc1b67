// The record of what is released, contracts/released.json: the SHA-256 of each file that others rely on. A released file is never
// edited, renamed or removed.

import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toText } from './forms.ts';

/** Path in contracts/ → SHA-256 of its bytes, in hex. */
export type Released = Readonly<Record<string, string>>;

const RECORD = 'released.json';
/** All that is in these folders is released. */
const FOLDERS = ['events', 'notifications', 'examples', 'types/released'];

/** @param folder that is contracts/ */
export function readReleased(folder: string): Released {
  const path = join(folder, RECORD);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Released) : {};
}

/** What is wrong with the released files, one line each: `events/completed.v1.json was changed`. */
export function faultsOf(folder: string): readonly string[] {
  return Object.entries(readReleased(folder)).flatMap(([path, sha256]) => {
    if (!existsSync(join(folder, path))) return [`${path} was removed`];
    return digestOf(folder, path) === sha256 ? [] : [`${path} was changed`];
  });
}

/** Files that are there and not in the record: they can still be edited. */
export function unreleased(folder: string): readonly string[] {
  const released = readReleased(folder);
  return FOLDERS.flatMap((place) => filesIn(folder, place)).filter((path) => !Object.hasOwn(released, path));
}

/** The forms among them that begin a new major version, such as `events/progress.v2.json`. */
export const majorVersions = (paths: readonly string[]): readonly string[] =>
  paths.filter((path) => /\.v(?!1\.)\d+\.json$/.test(path));

/** Adds the files to the record. What is in it already stays. */
export function release(folder: string, paths: readonly string[]): void {
  const added = paths.map((path) => [path, digestOf(folder, path)] as const);
  const all = [...added, ...Object.entries(readReleased(folder))];
  const sorted = all.toSorted(([one], [other]) => (one < other ? -1 : 1));
  writeFileSync(join(folder, RECORD), toText(Object.fromEntries(sorted)));
}

function filesIn(folder: string, place: string): string[] {
  if (!existsSync(join(folder, place))) return [];
  return readdirSync(join(folder, place), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(join(folder, '/').length))
    .toSorted();
}

const digestOf = (folder: string, path: string): string =>
  hash('sha256', readFileSync(join(folder, path)), 'hex');
