// The door of the operators' room: other rooms import from this file alone. The API's client has a door of its own
// (client/index.ts), so that whoever uses the client does not load the server.

export { type LogEntry, appendToLog } from './access/operator-log.ts';
export { TOKEN_ROLES, canBeLimited, isTokenRole } from './access/roles.ts';
export { tokenName } from './access/token-name.ts';
export { MAX_TOKENS, type Token, listTokens, makeToken, revokeToken } from './access/tokens.ts';
export { composeOperators } from './compose.ts';
