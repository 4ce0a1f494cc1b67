// `tallyhook sandbox tokens`: makes, lists and revokes tokens of an account, as one does in the service's dashboard.

import { UsageError } from '../../base/errors.ts';
import { parse, someOf } from '../../terminal/arguments.ts';
import { type Io, toJson } from '../../terminal/io.ts';
import { checkExpiry, checkName, SCOPES, tokenState } from '../index.ts';
import { ACCOUNT_OPTIONS, withAccount } from './data.ts';
import { TOKEN_OPTIONS } from './help.ts';

export async function tokens(args: string[], io: Io): Promise<number> {
  const [command, ...rest] = args;
  if (command === 'create') return create(rest, io);
  if (command === 'list') return list(rest, io);
  if (command === 'revoke') return revoke(rest, io);
  parse(args, {}); // --help
  throw new UsageError('sandbox tokens takes create, list or revoke');
}

/** The value alone on standard output, so that it can be taken into a variable. */
function create(args: string[], io: Io): number {
  const { values } = parse(args, { ...ACCOUNT_OPTIONS, ...TOKEN_OPTIONS });
  const { name = '', test, scopes, expires } = values;
  const order = {
    name: checkName('--name', name),
    environment: test === true ? 'test' : 'live',
    scopes: scopes === undefined ? SCOPES : someOf('--scopes', scopes, SCOPES),
    expiresAt: expires === undefined ? null : checkExpiry('--expires', expires, Date.now()),
  } as const;
  return withAccount(values, (accounts, account) => {
    const { token, value } = accounts.createToken({ account, ...order });
    io.complain(`token ${token.id} for ${token.scopes.join(', ')}; it is shown only this once:`);
    io.say(value);
    return 0;
  });
}

function list(args: string[], io: Io): number {
  const { values } = parse(args, ACCOUNT_OPTIONS);
  return withAccount(values, (accounts, account) => {
    const found = accounts.tokens(account.id);
    for (const token of found) {
      const { id, environment, name, scopes, lastUsedAt } = token;
      const state = tokenState(token, Date.now());
      const line = `${io.paint(state === 'valid' ? 'green' : 'red', state.padEnd(7))}  ${environment}  ${id}  ${name}`;
      const detail = `${scopes.join(' ')}  last used ${lastUsedAt ?? 'never'}`;
      io.say(io.stdout.isTTY ? `${line}  ${io.paint('dim', detail)}` : toJson({ ...token, state }));
    }
    if (found.length === 0) io.complain(`the account ${account.name} has no tokens`);
    return 0;
  });
}

function revoke(args: string[], io: Io): number {
  const { values, positionals } = parse(args, ACCOUNT_OPTIONS, 1);
  const [id] = positionals;
  if (id === undefined)
    throw new UsageError('sandbox tokens revoke takes the id of a token: see tokens list');
  return withAccount(values, (accounts) => {
    const isRevoked = accounts.revokeToken(id);
    io.complain(isRevoked ? `${id} is revoked` : `there is no valid token ${id}`);
    return isRevoked ? 0 : 1;
  });
}
