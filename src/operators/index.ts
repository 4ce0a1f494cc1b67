// The door of the operators' room: other rooms import from this file alone. The API's client has a door of its own
// (client/index.ts), so that a user of the client does not load the server.

export { type LogEntry, appendToLog } from './access/operator-log.ts';
export { canBeLimited, isTokenRole } from './access/roles.ts';
export { type Token, listTokens, makeToken, revokeToken, shownToken } from './access/tokens.ts';
export { composeOperators, composeReplays } from './compose.ts';
export { describeOperators } from './describe.ts';
export { tokenName } from './contract/token-name.ts';
export { MAX_TOKENS, TOKEN_ROLES } from './contract/tokens.ts';
