// The released JSON Schemas, as they lie in contracts/: byte for byte, also those of earlier versions. They are read from there,
// since code makes only the newest form.

import { readdirSync, readFileSync } from 'node:fs';
import { parseJson } from '../base/json/json.ts';

export type ReleasedForm = {
  /** Its path in contracts/: `events/completed.v1.json`. */
  readonly name: string;
  /** A URN; for the data of events the `dataschema` that they name. */
  readonly id: string;
  readonly title: string;
  readonly text: string;
};

const CONTRACTS = new URL('../../contracts/', import.meta.url);
const FOLDERS = ['events', 'notifications'];

/** All, in the order of their names. @throws Error if the files are not there */
export function readReleasedForms(): readonly ReleasedForm[] {
  return FOLDERS.flatMap((folder) =>
    readdirSync(new URL(folder, CONTRACTS))
      .filter((file) => file.endsWith('.json'))
      .toSorted()
      .map((file) => readForm(`${folder}/${file}`)),
  );
}

function readForm(name: string): ReleasedForm {
  const text = readFileSync(new URL(name, CONTRACTS), 'utf8');
  const { $id, title } = parseJson(text) as { readonly $id: string; readonly title: string };
  return { name, id: $id, title, text };
}
