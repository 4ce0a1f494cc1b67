// ALERTS_FILE: the channels that incidents are told to, the address that is called while all is well, and what messages link to. It is
// read again when it changes and on SIGHUP; a broken one keeps the old one and is logged. The addresses and secrets in it are
// secrets: no fault quotes them.

import type { KeyObject } from 'node:crypto';
import { z } from 'zod';
import type { Severity } from '../../base/conditions.ts';
import { ConfigError } from '../../base/errors.ts';
import { parseConfigJson, readConfigText, watchConfigFiles } from '../../base/files/config-files.ts';
import type { Logger } from '../../base/log/log.ts';
import { addressFault } from '../../base/net/http-client.ts';
import { createSecret } from '../../base/signing/secret.ts';
import { inspectStructure } from '../../ledger/index.ts';
import type { Links } from './told.ts';

export type Channel = {
  readonly name: string;
  readonly url: string;
  /** Whether it is told of incidents of this severity. */
  readonly takes: (severity: Severity) => boolean;
} & ({ readonly form: 'slack' | 'teams' } | { readonly form: 'json'; readonly key: KeyObject });

export type Alerts = {
  readonly channels: readonly Channel[];
  readonly heartbeatUrl: string | undefined;
  readonly links: Links;
};

export type AlertsFile = {
  /** The present content. Ask each time, since a reload replaces it. */
  readonly current: () => Alerts;
  /** Reads the file again. Never rejects. */
  readonly reload: () => Promise<void>;
  readonly close: () => void;
};

const VARIABLE = 'ALERTS_FILE';
/** Short enough for a column of a table, and safe in any text. */
const CHANNEL_NAME = /^[a-z0-9-]{1,32}$/;
/** A room for each team and a pager. Each may have a request under way, so this is also their number. */
export const CHANNELS_MAX = 10;
/** The longest addresses are those of Power Automate, of some 300 characters. */
const URL_MAX_LENGTH = 2_048;
/** `new URL` drops some of these silently, and reads a backslash as a slash. */
const UNCLEAR = /[\s\p{Cc}\\]/u;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

const NOTHING: Alerts = { channels: [], heartbeatUrl: undefined, links: {} };

/** What is wrong with it, without quoting it. */
function secretAddressFault(text: string): string | undefined {
  if (text.length > URL_MAX_LENGTH) return `is longer than ${URL_MAX_LENGTH} characters`;
  if (UNCLEAR.test(text)) return 'has white space, a backslash or a control character in it';
  const { protocol, hostname, username, password } = URL.canParse(text)
    ? new URL(text)
    : ({} as Partial<URL>);
  const isAllowed = protocol === 'https:' || (protocol === 'http:' && LOOPBACK.test(hostname ?? ''));
  if (!isAllowed) return 'must be a URL that starts with https:// (http:// to a loopback address only)';
  return username || password ? 'must not have a user name or password in it' : undefined;
}

const text = () => z.string({ error: ({ input }) => (input === undefined ? 'is missing' : 'is not a text') });
const checkedText = (faultOf: (value: string) => string | undefined) =>
  text().check(({ value, issues }) => {
    const message = faultOf(value);
    if (message !== undefined) issues.push({ code: 'custom', message, input: value });
  });

const address = checkedText(secretAddressFault);
const link = checkedText((value) => addressFault(value)?.replace('the address ', ''));
const secret = text().transform((value, context) => {
  const made = createSecret(value);
  if (typeof made !== 'string') return made.key;
  context.addIssue(made);
  return z.NEVER;
});

const objectOf = <Shape extends z.core.$ZodLooseShape>(shape: Shape) =>
  z.strictObject(shape, {
    error: ({ code }) =>
      code === 'unrecognized_keys'
        ? `has a field that is none of ${Object.keys(shape).join(', ')}`
        : 'is not an object',
  });

const common = {
  url: address,
  severity: z.literal('critical', 'must be "critical", or left out').optional(),
};
const channel = z.discriminatedUnion(
  'form',
  [
    objectOf({ form: z.literal('slack'), ...common }),
    objectOf({ form: z.literal('teams'), ...common }),
    objectOf({ form: z.literal('json'), ...common, secret }),
  ],
  { error: ({ code }) => (code === 'invalid_union' ? 'must be slack, teams or json' : 'is not an object') },
);

const alertsFile = objectOf({
  console: link.optional(),
  runbook: link.optional(),
  channels: z
    .record(z.string().regex(CHANNEL_NAME), channel, 'is not an object')
    .refine((channels) => Object.keys(channels).length <= CHANNELS_MAX, `has more than ${CHANNELS_MAX}`)
    .default({}),
  heartbeat: objectOf({ url: address }).optional(),
});

/** Without a path there are no channels. @throws ConfigError with all faults of the file */
export async function watchAlertsFile({
  path,
  log,
}: {
  path: string | undefined;
  log: Logger;
}): Promise<AlertsFile> {
  const watched = await watchConfigFiles<Alerts>({
    files: path === undefined ? [] : [{ variable: VARIABLE, path, read: () => readAlertsFile(path) }],
    keeps: 'the previous channels stay valid',
    onReadAgain: (files) =>
      log.info({ files, channels: current().channels.map(({ name }) => name) }, 'channels of alerts loaded'),
    log,
  });
  const current = () => watched.contents().get(VARIABLE) ?? NOTHING;
  return { current, reload: watched.reload, close: watched.close };
}

/** @throws ConfigError */
async function readAlertsFile(path: string): Promise<Alerts> {
  const content = await readConfigText(VARIABLE, path);
  const parsed = alertsFile.safeParse(parseConfigJson(VARIABLE, content));
  // Of a repeated name only the last one would count.
  if (inspectStructure(content).repeatsKey)
    throw new ConfigError([`${VARIABLE} has a key more than once in an object`]);
  if (!parsed.success) throw new ConfigError([...new Set(parsed.error.issues.map(describeIssue))]);
  const { channels, heartbeat, console, runbook } = parsed.data;
  return {
    channels: Object.entries(channels).map(([name, { severity, ...rest }]) => ({
      name,
      takes: (asked) => severity === undefined || asked === severity,
      ...(rest.form === 'json' ? { form: rest.form, url: rest.url, key: rest.secret } : rest),
    })),
    heartbeatUrl: heartbeat?.url,
    links: { console: withoutSlash(console), runbook: withoutSlash(runbook) },
  };
}

const withoutSlash = (url: string | undefined) => url?.replace(/\/+$/, '');

/** Quotes only valid names: any other key may be a secret in the wrong place. */
function describeIssue({ code, path, message }: z.core.$ZodIssue): string {
  if (code === 'invalid_key') return `${VARIABLE} has a channel whose name is not 1 to 32 of a-z, 0-9 or -`;
  return [VARIABLE, path.map(String).join('.'), message].filter(Boolean).join(' ');
}
