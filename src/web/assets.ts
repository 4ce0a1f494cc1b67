// Serves a site's styles, scripts and pictures. Their address holds a hash of them all, so a browser keeps them for good and
// still gets new ones with a new version.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';
import { type RequestHandler, Router } from 'express';

export type Assets = {
  /** The address of a file, below the site. @throws Error for a file that there is not */
  readonly href: (name: string) => string;
  /** Mounted at the site's own path. Needs no session. */
  readonly router: Router;
};

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const YEAR_S = 31_536_000;

/**
 * @param site where it is mounted: `/console`
 * @param files by the names that they are served under. Read once, here.
 */
export function createAssets(site: string, files: Readonly<Record<string, URL>>): Assets {
  const contents = new Map(Object.entries(files).map(([name, url]) => [name, readFileSync(url)]));
  const hash = createHash('sha256');
  for (const [name, bytes] of contents) hash.update(`${name}\0${bytes.length}\0`).update(bytes);
  const folder = `/assets/${hash.digest('hex').slice(0, 12)}`;
  const router = Router({ caseSensitive: true, strict: true });
  for (const [name, bytes] of contents) router.get(`${folder}/${name}`, serve(name, bytes));
  return {
    router,
    href: (name) => {
      if (!contents.has(name)) throw new Error(`there is no file ${name} among the assets`);
      return `${site}${folder}/${name}`;
    },
  };
}

function serve(name: string, bytes: Buffer): RequestHandler {
  const type = TYPES[extname(name)];
  if (type === undefined) throw new Error(`${name}: its content type is not known`);
  return (_request, response) => {
    response
      .set({ 'Content-Type': type, 'Cache-Control': `public, max-age=${YEAR_S}, immutable` })
      .send(bytes);
  };
}
