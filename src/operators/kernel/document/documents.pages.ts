// The documents, as they come with the program: so they are about the version that runs, and can be read where nothing else can be
// reached.

import { readdir, readFile } from 'node:fs/promises';
import { html } from '../../../web/index.ts';
import { get, type Page } from '../console/page.ts';
import { notFound } from '../operation/operation.ts';
import { DOCUMENTS, documentHref, placeOfAnchor } from '../view/documents.ts';
import { renderMarkdown, titleOf } from './markdown.ts';

const FOLDER = new URL('../../../../docs/', import.meta.url);
/** Of the overview: whoever may see that may read. */
const NEEDS = ['getStats'];
const NAME = /^[a-z-]+$/;
const WITH_SECTION = /^(?<name>[a-z-]+)\.md(?:#(?<anchor>.+))?$/;

/** Pages of the folder are here, and other sites where they are. Other files are not. */
function resolve(target: string): string | undefined {
  if (target.startsWith('https://')) return target;
  if (target.startsWith('#')) return `#${placeOfAnchor(target.slice(1))}`;
  const { name, anchor } = WITH_SECTION.exec(target)?.groups ?? {};
  return name === undefined ? undefined : documentHref(name, anchor);
}

const read = (name: string): Promise<string> => readFile(new URL(`${name}.md`, FOLDER), 'utf8');

/** Their names, in order. None where the program was installed without its documents. */
async function names(): Promise<string[]> {
  try {
    const files = await readdir(FOLDER);
    return files.filter((file) => file.endsWith('.md')).map((file) => file.slice(0, -'.md'.length));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

const list: Page = get('/docs', NEEDS, async () => {
  const all = await Promise.all(
    (await names()).toSorted().map(async (name) => ({ name, title: titleOf(await read(name)) })),
  );
  return {
    title: 'Documents',
    body:
      all.length === 0
        ? html`<p class="empty">This program was installed without its documents, the folder <code>docs</code>.</p>`
        : html`<ul>${all.map(({ name, title }) => html`<li><a href="${documentHref(name)}">${title}</a></li>\n`)}</ul>`,
  };
});

const one: Page = get('/docs/:name', NEEDS, async ({ params }) => {
  const { name = '' } = params;
  if (!NAME.test(name) || !(await names()).includes(name)) throw notFound('document');
  const text = await read(name);
  return {
    title: titleOf(text),
    body: html`<p><a href="${DOCUMENTS}">All documents</a></p>
<article class="document">${renderMarkdown(text, resolve)}</article>`,
  };
});

export const documentPages: readonly Page[] = [list, one];
