// What a token allows. Each of ROLES may do what those before it may; a scraper reads the metrics and nothing
// else, and everybody else may read them, too.

import { ROLES, TOKEN_ROLES } from '../contract/tokens.ts';

/** What an operation can ask for. */
export type Role = (typeof ROLES)[number];
/** What a token can have. */
export type TokenRole = (typeof TOKEN_ROLES)[number];

export function isTokenRole(text: string): text is TokenRole {
  return (TOKEN_ROLES as readonly string[]).includes(text);
}

export function isRole(role: TokenRole): role is Role {
  return role !== 'scraper';
}

/** A scraper limited to sources could do nothing: the metrics' numbers are of all sources, and it may read no others. */
export function canBeLimited(role: TokenRole): boolean {
  return role !== 'scraper';
}

export function mayAct(has: TokenRole, needed: Role): boolean {
  return has !== 'scraper' && ROLES.indexOf(has) >= ROLES.indexOf(needed);
}
