// The units of deploy/systemd as systemd reads them, for tests that run what they say without a systemd.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const unitPath = (name: string): string =>
  fileURLToPath(new URL(`../../deploy/systemd/${name}`, import.meta.url));

export type Unit = {
  readonly text: string;
  /** Every value of a key, in order. */
  readonly all: (key: string) => readonly string[];
  /** The value of a key that stands there once. @throws Error if it does not */
  readonly one: (key: string) => string;
};

export function readUnit(name: string): Unit {
  const text = readFileSync(unitPath(name), 'utf8');
  const lines = Array.from(text.matchAll(/^(\w+)=(.*)$/gm), ([, key = '', value = '']) => ({ key, value }));
  const all = (key: string) => lines.filter((line) => line.key === key).map(({ value }) => value);
  return {
    text,
    all,
    one: (key) => {
      const [value, ...more] = all(key);
      if (value === undefined || more.length > 0) throw new Error(`${name} has not exactly one ${key}`);
      return value;
    },
  };
}

/** The credentials that a unit loads: the name of each, and the file of root's. */
export const credentialsOf = (unit: Unit): { readonly id: string; readonly path: string }[] =>
  unit.all('LoadCredential').map((value) => {
    const [id = '', path = ''] = value.split(':');
    return { id, path };
  });

/** What its `Environment=` says, with its credentials in this folder. None of our values is quoted. */
export const environmentOf = (unit: Unit, credentials: string): Record<string, string> =>
  Object.fromEntries(
    unit
      .all('Environment')
      .flatMap((line) => line.split(' '))
      .map((assignment) => {
        const [name = '', value = ''] = assignment.split('=');
        return [name, value.replaceAll('%d', credentials)];
      }),
  );
