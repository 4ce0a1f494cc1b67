// The door of the operators' room: other rooms import from this file alone. The API's client has a door of its own
// (client/index.ts), so that a user of the client does not load the server.

export { composeOperators, composeReplays } from './compose.ts';
export { describeOperators } from './describe.ts';
export { appendToLog, type LogEntry } from './kernel/access/operator-log.queries.ts';
export { canBeLimited, isTokenRole } from './kernel/access/roles.ts';
export {
  listTokens,
  makeToken,
  revokeToken,
  shownToken,
  type Token,
} from './kernel/access/tokens.queries.ts';
export { MAX_TOKENS, TOKEN_ROLES } from './tokens/contract.ts';
export { tokenName } from './tokens/name.contract.ts';
