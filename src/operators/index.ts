// The operators' side: the API, who may use it, what it reads, decides and replays. Its client has a door of its own
// (client/index.ts), so that a client brings no server along.
// The door of this room: other rooms import from this file alone.

export { type Entry, appendToLog } from './access/operator-log.ts';
export { canBeLimited, isTokenRole } from './access/roles.ts';
export { type Token, listTokens, makeToken, revokeToken } from './access/tokens.ts';
export { composeOperators } from './compose.ts';
export { tokenName } from './contract/token-name.ts';
export { MAX_TOKENS, TOKEN_ROLES } from './contract/tokens.ts';
export { createFeeder } from './replays/feeder.ts';
