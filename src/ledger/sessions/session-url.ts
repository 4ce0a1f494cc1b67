// What a connection string says of sessions. Start-up parameters are taken out of it: poolers refuse or drop them. Its `options`
// are set by statements instead, before our own settings, which win.

import { ConfigError } from '../../base/errors.ts';
import { databaseUrls } from '../../base/net/database-url.ts';
import type { Server } from './servers.ts';
import type { Settings } from './session.ts';
import { makeClient, tlsFaultIn } from './tls.ts';

/** Parameters that pg would send at start-up, or that would change our limits. */
const OURS = [
  'options',
  'statement_timeout',
  'lock_timeout',
  'idle_in_transaction_session_timeout',
  'query_timeout',
];

/** Here they are "verify-full". So pg has them, too; but it warns at each start that its next version will check less. */
const CHECKED_FULLY = ['allow', 'prefer', 'require', 'verify-ca'];

/** `-c name=value`, `-cname=value` or `--name=value`, as Postgres takes them. A backslash keeps the next character. */
const OPTION = /^(?:-c\s*|--)([\w.-]+)=((?:\\.|[^\s\\])*)(?:\s+|$)/;

/**
 * @returns `url`: for pg, of the first server. The others differ by their addresses alone
 * @throws ConfigError if `options` has anything but settings, or a file that it names is unfit; it quotes nothing of them
 */
export function readSessionUrl(text: string): { readonly url: string; readonly own: Settings } {
  const [first] = databaseUrls(text);
  const parsed = new URL(first);
  const own = settingsOf(parsed.searchParams.get('options') ?? '');
  for (const name of OURS) parsed.searchParams.delete(name);
  const { searchParams } = parsed;
  if (
    CHECKED_FULLY.includes(searchParams.get('sslmode') ?? '') &&
    searchParams.get('uselibpqcompat') !== 'true'
  )
    searchParams.set('sslmode', 'verify-full');
  const fault = tlsFaultIn(parsed.href);
  if (fault !== undefined) throw new ConfigError([`TLS with the database: ${fault}`]);
  return { url: parsed.href, own };
}

export function serversIn(text: string): readonly [Server, ...Server[]] {
  const [first, ...others] = databaseUrls(text);
  return [addressIn(first), ...others.map(addressIn)];
}

/** As pg reads it, with its defaults. */
function addressIn(url: string): Server {
  const { host, port } = makeClient({ connectionString: url });
  return { host, port };
}

function settingsOf(options: string): Settings {
  const settings: Record<string, string> = {};
  for (let rest = options.trim(); rest !== ''; ) {
    const found = OPTION.exec(rest);
    if (found === null) {
      throw new ConfigError([
        'DATABASE_URL has "options" that are not settings: each must be -c name=value or --name=value',
      ]);
    }
    const [whole, name = '', value = ''] = found;
    settings[name.replaceAll('-', '_')] = value.replaceAll(/\\(.)/g, '$1');
    rest = rest.slice(whole.length);
  }
  return settings;
}
