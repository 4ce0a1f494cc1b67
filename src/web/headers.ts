// The headers of pages: what a page may load, and what it tells other sites. Nothing is loaded from elsewhere and nothing
// stands inline, so text that slipped through as markup could still not run.

import type { RequestHandler } from 'express';
import helmet from 'helmet';

const SELF = ["'self'"];
const NONE = ["'none'"];

/**
 * On every page, also on one that reports an error.
 *
 * `Referrer-Policy: same-origin`, since with `no-referrer` browsers send `Origin: null` with each form, and over plain http
 * by an address that is all they send.
 */
export function pageHeaders(): readonly RequestHandler[] {
  return [
    helmet({
      contentSecurityPolicy: {
        useDefaults: false,
        directives: {
          defaultSrc: NONE,
          scriptSrc: SELF,
          styleSrc: SELF,
          imgSrc: SELF,
          connectSrc: SELF,
          formAction: SELF,
          frameAncestors: NONE,
          baseUri: NONE,
        },
      },
      crossOriginResourcePolicy: { policy: 'same-origin' },
      referrerPolicy: { policy: 'same-origin' },
      xFrameOptions: { action: 'deny' },
    }),
    (_request, response, next) => {
      response.setHeader('Cache-Control', 'no-store');
      next();
    },
  ];
}
