// The forms that others rely on, and where the files of each are: `events/completed.v1.json` is the first of major version 1,
// and `events/completed.v1.1.json` the next one, which adds to it and breaks nobody. Files are never changed, so a form that is
// made anew is compared with the newest file, without what only explains: titles and descriptions.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { dirname, join } from 'node:path';
import {
  addresseeForm,
  dataForm,
  envelopeForm,
  type Form,
  KINDS,
  notificationForm,
} from '../../src/event/index.ts';
import { compare, type Direction } from './compare.ts';
import { meaningOf } from './meaning.ts';

export type FrozenForm = {
  /** Its place in contracts/, without the version. */
  readonly name: string;
  /** Who must not break when it changes. */
  readonly direction: Direction;
  readonly make: () => Form;
};

export const FORMS: readonly FrozenForm[] = [
  { name: 'events/envelope', direction: 'readers', make: envelopeForm },
  ...KINDS.flatMap((kind): FrozenForm[] => [
    { name: `events/${kind}`, direction: 'readers', make: () => dataForm(kind) },
    { name: `notifications/${kind}`, direction: 'senders', make: () => notificationForm(kind) },
  ]),
  { name: 'notifications/addressee', direction: 'senders', make: addresseeForm },
];

/** A file of a form. `minor` is 0 for the first of its major version. */
export type FormFile = {
  readonly path: string;
  readonly major: number;
  readonly minor: number;
  readonly form: Form;
};

/** All files of a form, of all versions, the oldest first. @param folder that is contracts/ */
export function filesOf({ name }: FrozenForm, folder: string): readonly FormFile[] {
  const place = dirname(name);
  const names = existsSync(join(folder, place)) ? readdirSync(join(folder, place)) : [];
  return names
    .flatMap((fileName): FormFile[] => {
      const path = `${place}/${fileName}`;
      const [, before, major, minor = '0'] = /^(.+)\.v(\d+)(?:\.(\d+))?\.json$/.exec(path) ?? [];
      if (before !== name) return [];
      const form = JSON.parse(readFileSync(join(folder, path), 'utf8')) as Form;
      return [{ path, major: Number(major), minor: Number(minor), form }];
    })
    .toSorted((one, other) => one.major - other.major || one.minor - other.minor);
}

/**
 * The file of a form as it is made now: the newest one if that says the same, whatever it explains; otherwise the next one.
 * @param isReleased files that are not may be written anew
 */
export function makeFile(
  frozen: FrozenForm,
  folder: string,
  isReleased: (path: string) => boolean,
): FormFile & { readonly text: string } {
  const made = frozen.make();
  const [, before = made.$id, number = ''] = /^(.+):(\d+)$/.exec(made.$id) ?? [];
  const major = Number(number);
  const newest = filesOf(frozen, folder)
    .filter((file) => file.major === major && isReleased(file.path))
    .at(-1);
  if (newest !== undefined && isDeepStrictEqual(meaningOf(newest.form), meaningOf(made)))
    return { ...newest, text: readFileSync(join(folder, newest.path), 'utf8') };
  const minor = newest === undefined ? 0 : newest.minor + 1;
  const version = minor === 0 ? `${major}` : `${major}.${minor}`;
  const form = { ...made, $id: `${before}:${version}` };
  return { path: `${frozen.name}.v${version}.json`, major, minor, form, text: toText(form) };
}

/** Each new form against all earlier ones of its major version. One line for each break: which file, where, and which rule. */
export function breaksOf({ direction }: Pick<FrozenForm, 'direction'>, files: readonly FormFile[]): string[] {
  return files.flatMap((newer) =>
    files
      .filter((older) => older.major === newer.major && older.minor < newer.minor)
      .flatMap((older) =>
        compare(older.form, newer.form, direction).map(
          ({ path, rule, message }) =>
            `${newer.path} breaks ${direction} of ${older.path} at ${path || 'the whole form'}: ${rule} (${message})`,
        ),
      ),
  );
}

export const toText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
