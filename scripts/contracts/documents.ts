// Every file in contracts/ that `npm run contracts` makes. A test compares each one with the committed file.

import { fileURLToPath } from 'node:url';
import { breaksOf, filesOf, FORMS, makeFile } from './forms.ts';
import { makeAsyncApi, makeIntake, makeOperators } from './interfaces.ts';
import { makePython } from './python.ts';
import { readReleased } from './released.ts';
import { makeTypeScript } from './typescript.ts';

export const CONTRACTS = fileURLToPath(new URL('../../contracts', import.meta.url));

type TextMaker = () => string | Promise<string>;

/** Path in contracts/ → how its text is made. The forms are made apart: their versions are in the names of their files. */
const DOCUMENTS: Readonly<Record<string, TextMaker>> = {
  'asyncapi.json': makeAsyncApi,
  'openapi.intake.json': makeIntake,
  'openapi.operators.json': makeOperators,
  'types/events.ts': makeTypeScript,
  'types/tallyhook_events.py': makePython,
};

/** `make` throws if there is no such document: a sample is no event any more, or a generator cannot write a form. */
export type Making = { readonly path: string; readonly make: TextMaker };

/**
 * All files. Nothing but the forms is made before `make` is called, so that breaks can be named first.
 * @param folder that is contracts/: what is released there is not made anew
 */
export function listMakings(folder: string = CONTRACTS): readonly Making[] {
  const forms = makeForms(folder).map(({ made: { path, text } }) => ({ path, make: () => text }));
  return [...forms, ...Object.entries(DOCUMENTS).map(([path, make]) => ({ path, make }))];
}

/** What each form breaks, also one that is not written yet. */
export function allBreaks(folder: string = CONTRACTS): readonly string[] {
  return makeForms(folder).flatMap(({ form, made }) => {
    const others = filesOf(form, folder).filter(({ path }) => path !== made.path);
    return breaksOf(form, [...others, made]);
  });
}

/** Files of forms that were never released and are not made any more: the change was undone, or became another one. */
export function leftOver(folder: string = CONTRACTS): readonly string[] {
  const released = readReleased(folder);
  return makeForms(folder).flatMap(({ form, made }) =>
    filesOf(form, folder)
      .map(({ path }) => path)
      .filter((path) => path !== made.path && !Object.hasOwn(released, path)),
  );
}

function makeForms(folder: string) {
  const released = readReleased(folder);
  return FORMS.map((form) => ({
    form,
    made: makeFile(form, folder, (path) => Object.hasOwn(released, path)),
  }));
}
