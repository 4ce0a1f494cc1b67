// The security headers of each answer of the operators' port and of the sandbox's dashboard: what a page may load, and what it
// tells other sites. The names are those of the OWASP Secure Headers Project.

import type { RequestHandler } from 'express';

/** Nothing may be loaded. */
const NOTHING = "default-src 'none';base-uri 'none';form-action 'none';frame-ancestors 'none'";
/** Nothing is loaded from elsewhere and nothing stands inline, so text that slipped through as markup could still not run. */
const OUR_OWN =
  "default-src 'none';script-src 'self';style-src 'self';img-src 'self';connect-src 'self';form-action 'self';" +
  "frame-ancestors 'none';base-uri 'none'";

/** Of answers that are no pages. */
export const ANSWER_HEADERS = {
  'Content-Security-Policy': NOTHING,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Origin-Agent-Cluster': '?1',
  'Referrer-Policy': 'no-referrer',
  'Strict-Transport-Security': 'max-age=31536000; includeSubDomains',
  'X-Content-Type-Options': 'nosniff',
  'X-DNS-Prefetch-Control': 'off',
  'X-Download-Options': 'noopen',
  'X-Frame-Options': 'DENY',
  'X-Permitted-Cross-Domain-Policies': 'none',
  'X-XSS-Protection': '0', // what old browsers did for it could be abused
  'Cache-Control': 'no-store',
} as const;

/**
 * On every page, also on one that reports an error.
 *
 * `Referrer-Policy: same-origin`, since with `no-referrer` browsers send `Origin: null` with each form, and over plain http
 * by an address that is all they send.
 */
const PAGE_HEADERS = {
  ...ANSWER_HEADERS,
  'Content-Security-Policy': OUR_OWN,
  'Referrer-Policy': 'same-origin',
} as const;

const setting =
  (headers: Readonly<Record<string, string>>): RequestHandler =>
  (_request, response, next) => {
    response.set(headers);
    next();
  };

export const answerHeaders = (): RequestHandler => setting(ANSWER_HEADERS);
export const pageHeaders = (): RequestHandler => setting(PAGE_HEADERS);
