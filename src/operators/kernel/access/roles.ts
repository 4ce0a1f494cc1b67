// The roles of tokens. Each role in ROLES may do what the roles before it may. A scraper reads the metrics and nothing
// else; every other role may read them, too.

import { ROLES, TOKEN_ROLES } from '../../tokens/contract.ts';

/** What an operation can require. */
export type Role = (typeof ROLES)[number];
/** What a token can have. */
export type TokenRole = (typeof TOKEN_ROLES)[number];

export function isTokenRole(text: string): text is TokenRole {
  return (TOKEN_ROLES as readonly string[]).includes(text);
}

export function isRole(role: TokenRole): role is Role {
  return role !== 'scraper';
}

/** Metrics count all sources, so a scraper that is limited to some sources could read nothing. */
export function canBeLimited(role: TokenRole): boolean {
  return role !== 'scraper';
}

export function mayAct(has: TokenRole, needed: Role): boolean {
  return has !== 'scraper' && ROLES.indexOf(has) >= ROLES.indexOf(needed);
}

/** Who may read bodies, and what is taken from them. */
export const BODY_ROLE = 'auditor';
