// The routes of one address of the dashboard. Methods that it does not have get a page that says so.

import type { RequestHandler, Router } from 'express';
import { PageError } from './page-error.ts';

/** `:id` in the path. */
export type WithId = RequestHandler<{ id: string }>;

export function at(
  router: Router,
  path: string,
  { get, post }: { readonly get?: WithId; readonly post?: WithId },
): void {
  const allowed = [...(get ? ['GET', 'HEAD'] : []), ...(post ? ['POST'] : [])].join(', ');
  if (get) router.get(path as '/:id', get);
  if (post) router.post(path as '/:id', post);
  router.all(path, () => {
    throw new PageError(
      405,
      'This address does not take such a request',
      get ? 'Nothing was changed.' : 'Use the button on its page. Nothing was changed.',
      { Allow: allowed },
    );
  });
}
