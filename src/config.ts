// The configuration: turns environment variables into one frozen, typed object. Lists every fault at once, by the variable's
// name and never by its value. The service reads no variable anywhere else.

import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { areEncrypted, brokerUrlsForm } from './base/amqp/broker-urls.ts';
import { ConfigError } from './base/errors.ts';
import { type CertificateFiles, certificatesFault, readCertificates } from './base/net/certificates.ts';
import { databaseUrlForm } from './base/net/database-url.ts';
import { parseRange } from './base/net/ip-range.ts';
import { parseSecrets, type Secret } from './base/signing/secret.ts';

export type Env = Readonly<Record<string, string | undefined>>;
export type Config = ReturnType<typeof toConfig>;

/** A whole number between `min` and `max`, both included. */
const whole = (min: number, max: number, fallback: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`))
    .default(fallback);

const flag = (fallback: boolean) =>
  z
    .enum(['true', 'false', '1', '0'], 'must be true or false')
    .transform((text) => text === 'true' || text === '1')
    .default(fallback);

const url = (...protocols: string[]) =>
  z
    .string('must be set')
    .refine(
      (text) => URL.canParse(text) && protocols.includes(new URL(text).protocol),
      `must be a URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`,
    );

/** It carries the account that asks. */
const managementUrl = url('http:', 'https:').refine((text) => {
  const { username, password, search, hash } = URL.canParse(text) ? new URL(text) : new URL('http://none');
  return username !== '' && password !== '' && search === '' && hash === '';
}, 'must name an account and have no query: http://user:password@host:15672');

/** AMQP short strings hold at most 255 bytes; the routing key carries a source of up to 63 after its prefix. */
const amqpName = (fallback: string) =>
  z
    .string()
    .regex(/^[\w.:-]{1,127}$/, 'must be 1 to 127 letters, digits, or _ . : -')
    .default(fallback);

/** More than any provider's published list of balancers. Each hop of a request is compared with each entry. */
const RANGES_MAX = 1_000;

const ranges = () =>
  z
    .string()
    .transform((list) => list.split(',').map((entry) => entry.trim()))
    .check(({ value, issues }) => {
      const fault = (message: string) => issues.push({ code: 'custom', message, input: value });
      if (value.length > RANGES_MAX) fault(`has more than ${RANGES_MAX} entries`);
      for (const [index, entry] of value.entries()) {
        if (parseRange(entry) === undefined)
          fault(`entry ${index + 1} must be an IP address or a CIDR range, such as 10.0.0.0/8`);
      }
    })
    .default([]);

// A line for each variable: what it accepts, and its default. A test compares the table in docs/configuration.md with these keys.
const environment = z.object({
  HOST: z.string().default('0.0.0.0'),
  PORT: whole(0, 65_535, 8080),
  OPERATOR_HOST: z.string().default('127.0.0.1'),
  OPERATOR_PORT: whole(0, 65_535, 8081),
  BODY_LIMIT_BYTES: whole(1024, 16 * 1024 * 1024, 256 * 1024),
  ANSWER_DEADLINE_MS: whole(500, 9_500, 5_000),
  MAX_CONNECTIONS: whole(1, 100_000, 4_096),
  TRUSTED_PROXIES: ranges(),
  MAX_CONNECTIONS_PER_ADDRESS: whole(1, 100_000, 1_100),
  UNVERIFIED_BODY_BYTES: whole(1024 * 1024, 4 * 1024 ** 3, 32 * 1024 * 1024),

  ENVIRONMENT: z.enum(['live', 'test'], 'must be live or test').default('live'),
  API_REQUESTS_PER_MINUTE: whole(1, 1_000_000, 600),
  METRICS_OPEN: flag(false),
  OPERATOR_QUERY_TIMEOUT_MS: whole(100, 60_000, 5_000),
  OPERATOR_DB_CONNECTIONS: whole(1, 64, 4),

  SIGNING_SECRETS: z.string().optional(),
  SOURCES_FILE: z.string().optional(),
  REFUSED_ROWS_PER_MINUTE: whole(0, 10_000, 60),
  ALERTS_FILE: z.string().optional(),

  WRITE_QUEUE_DELIVERIES: whole(1, 1_000_000, 10_000),
  WRITE_QUEUE_BYTES: whole(1024 * 1024, 4 * 1024 ** 3, 64 * 1024 * 1024),
  BATCH_DELIVERIES: whole(1, 5_000, 500),
  BATCH_BYTES: whole(64 * 1024, 64 * 1024 * 1024, 4 * 1024 * 1024),
  BATCHES_IN_FLIGHT: whole(1, 16, 2),

  DATABASE_URL: databaseUrlForm(),
  MIGRATION_DATABASE_URL: databaseUrlForm().optional(),
  MIGRATE_ON_START: flag(false),
  RETENTION_DAYS: whole(1, 3_650, 30),

  AMQP_URL: brokerUrlsForm('must be set'),
  AMQP_CA_FILE: z.string().optional(),
  AMQP_CERT_FILE: z.string().optional(),
  AMQP_KEY_FILE: z.string().optional(),
  AMQP_EXCHANGE: amqpName('conversion.events'),
  AMQP_ROUTING_PREFIX: amqpName('job'),
  AMQP_HEARTBEAT_S: whole(1, 300, 10),
  AMQP_CONNECT_TIMEOUT_MS: whole(100, 60_000, 3_000),
  AMQP_CONFIRM_DEADLINE_MS: whole(1_000, 600_000, 40_000),

  BROKER_MANAGEMENT_URL: managementUrl.optional(),
  BROKER_MANAGEMENT_CA_FILE: z.string().optional(),

  RELAY_LEASE_MS: whole(500, 60_000, 3_000),
  RELAY_POLL_MS: whole(10, 60_000, 200),
  RELAY_IN_FLIGHT: whole(1, 10_000, 500),
  RELAY_IN_FLIGHT_BYTES: whole(1024 * 1024, 1024 ** 3, 16 * 1024 * 1024),
  RELAY_MAX_ATTEMPTS: whole(1, 1_000, 20),

  SHUTDOWN_DELAY_MS: whole(0, 60_000, 0),
  SHUTDOWN_GRACE_MS: whole(1_000, 300_000, 20_000),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  LOG_PRETTY: flag(false),
});

type Environment = z.infer<typeof environment>;

/** Every variable, for the table in docs/configuration.md and `--help`. */
export const variables: readonly string[] = Object.keys(environment.shape);

/** Variables whose value is or contains a secret. Each can also be read from the file that `<NAME>_FILE` names. */
export const secretVariables = [
  'SIGNING_SECRETS',
  'DATABASE_URL',
  'MIGRATION_DATABASE_URL',
  'AMQP_URL',
  'BROKER_MANAGEMENT_URL',
] as const;

/**
 * The whole configuration.
 * @throws ConfigError with every variable at fault
 */
export function loadConfig(env: Env): Config {
  const { given, data, faults } = readEnvironment(environment, env);
  const list = given['SIGNING_SECRETS'] ?? env['SIGNING_SECRETS'];
  const secrets = list === undefined ? [] : parseSecrets('SIGNING_SECRETS', list, faults);
  const noSecretNamed = !('SIGNING_SECRETS' in env) && !env['SIGNING_SECRETS_FILE'];
  if (noSecretNamed && !given['SOURCES_FILE']) {
    faults.push('SIGNING_SECRETS must be set (or SIGNING_SECRETS_FILE, or SOURCES_FILE): nobody could send');
  }
  if (data !== undefined && data.UNVERIFIED_BODY_BYTES < data.BODY_LIMIT_BYTES) {
    faults.push(
      'UNVERIFIED_BODY_BYTES must be at least BODY_LIMIT_BYTES: no body of that size could be read',
    );
  }
  if (data !== undefined) faults.push(...certificateFaults(data), ...managementFaults(data));
  if (data === undefined || faults.length > 0) throw new ConfigError(faults);
  return toConfig(data, { secrets, file: given['SIGNING_SECRETS_FILE'] });
}

/** In letters that are wrong, missing or too many, or two that changed places. */
const MISSPELT_BY = 2;
/** In a shorter name that many letters are a quarter of it, and it could be anything. */
const MISSPELT_LENGTH = 8;

/** Sentences on variables that are none of ours and look like one that is not set. They name no value. */
export function misspeltVariables(env: Env): string[] {
  const known = [...variables, ...secretVariables.map((name) => `${name}_FILE`)];
  const missing = known.filter((name) => env[name] === undefined && name.length >= MISSPELT_LENGTH);
  return Object.keys(env).flatMap((name) => {
    if (known.includes(name)) return [];
    const meant = missing.find((ours) => editDistance(name.toUpperCase(), ours) <= MISSPELT_BY);
    return meant === undefined ? [] : [`${name} is no variable of Tallyhook: is ${meant} meant?`];
  });
}

/** The optimal string alignment distance. Both are names, so they are short; of lengths that differ by more it is more than we ask for. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > MISSPELT_BY) return Infinity;
  let [before, last]: number[][] = [[], Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let row = 1; row <= a.length; row += 1) {
    const next = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const isSame = a[row - 1] === b[column - 1];
      const isSwapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      next[column] = Math.min(
        (last?.[column] ?? 0) + 1,
        (next[column - 1] ?? 0) + 1,
        (last?.[column - 1] ?? 0) + Number(!isSame),
        isSwapped ? (before?.[column - 2] ?? 0) + 1 : Infinity,
      );
    }
    [before, last] = [last ?? [], next];
  }
  return last?.[b.length] ?? Infinity;
}

type Certified = Pick<Environment, 'AMQP_URL' | 'AMQP_CA_FILE' | 'AMQP_CERT_FILE' | 'AMQP_KEY_FILE'>;

const certificatesOf = (env: Certified): CertificateFiles => ({
  ca: env.AMQP_CA_FILE,
  cert: env.AMQP_CERT_FILE,
  key: env.AMQP_KEY_FILE,
});

/** The files are read again for each connection: what they lack now would be a fault of each. */
function certificateFaults(env: Certified): string[] {
  const names = (['AMQP_CA_FILE', 'AMQP_CERT_FILE', 'AMQP_KEY_FILE'] as const).filter((name) => env[name]);
  if (names.length === 0) return [];
  if (!areEncrypted(env.AMQP_URL))
    return [`${names.join(' and ')} would have no effect: AMQP_URL has to begin with amqps://`];
  return fileFaults(
    Object.fromEntries(names.map((name) => [name, env[name] as string])),
    certificatesOf(env),
  );
}

function managementFaults({
  BROKER_MANAGEMENT_URL: address,
  BROKER_MANAGEMENT_CA_FILE: path,
}: Pick<Environment, 'BROKER_MANAGEMENT_URL' | 'BROKER_MANAGEMENT_CA_FILE'>): string[] {
  const name = 'BROKER_MANAGEMENT_CA_FILE';
  if (path === undefined) return [];
  if (address === undefined || new URL(address).protocol !== 'https:')
    return [`${name} would have no effect: BROKER_MANAGEMENT_URL has to begin with https://`];
  return fileFaults({ [name]: path }, { ca: path });
}

/** @param paths by their variables */
function fileFaults(paths: Readonly<Record<string, string>>, files: CertificateFiles): string[] {
  const unreadable = Object.entries(paths).flatMap(([name, path]) => readingFault(name, path));
  if (unreadable.length > 0) return unreadable;
  const fault = certificatesFault(readCertificates(files));
  return fault === undefined ? [] : [`${Object.keys(paths).join(', ')}: ${fault}`];
}

function readingFault(name: string, path: string): string[] {
  try {
    readFileSync(path);
    return [];
  } catch (error) {
    return [`${name} cannot be read (${(error as NodeJS.ErrnoException).code})`];
  }
}

/** The broker and the names on it, for a subscriber. @throws ConfigError */
export function loadBus(env: Env): {
  url: string;
  certificates: CertificateFiles;
  exchange: string;
  routingPrefix: string;
} {
  const bus = environment.pick({
    AMQP_URL: true,
    AMQP_CA_FILE: true,
    AMQP_CERT_FILE: true,
    AMQP_KEY_FILE: true,
    AMQP_EXCHANGE: true,
    AMQP_ROUTING_PREFIX: true,
  });
  const part = readPart(bus, env);
  const faults = certificateFaults(part);
  if (faults.length > 0) throw new ConfigError(faults);
  return {
    url: part.AMQP_URL,
    certificates: certificatesOf(part),
    exchange: part.AMQP_EXCHANGE,
    routingPrefix: part.AMQP_ROUTING_PREFIX,
  };
}

/** The connection strings of the database, for commands that do not serve. @throws ConfigError */
export function loadUrls(env: Env): { databaseUrl: string; migrationUrl: string | undefined } {
  const urls = environment.pick({ DATABASE_URL: true, MIGRATION_DATABASE_URL: true });
  const { DATABASE_URL, MIGRATION_DATABASE_URL } = readPart(urls, env);
  return { databaseUrl: DATABASE_URL, migrationUrl: MIGRATION_DATABASE_URL };
}

/** What `tallyhook tokens` needs. @throws ConfigError */
export function loadTokensConfig(env: Env): { databaseUrl: string; environment: Environment['ENVIRONMENT'] } {
  const { DATABASE_URL, ENVIRONMENT } = readPart(
    environment.pick({ DATABASE_URL: true, ENVIRONMENT: true }),
    env,
  );
  return { databaseUrl: DATABASE_URL, environment: ENVIRONMENT };
}

function readPart<T>(schema: z.ZodType<T>, env: Env): T {
  const { data, faults } = readEnvironment(schema, env);
  if (data === undefined || faults.length > 0) throw new ConfigError(faults);
  return data;
}

/** Reads the environment and the files that it names by `schema`. Each fault begins with the variable's name. */
function readEnvironment<T>(schema: z.ZodType<T>, env: Env) {
  const faults: string[] = [];
  const given = readSecretFiles(withoutEmpty(env), faults);
  const { data, error } = schema.safeParse(given);
  for (const issue of error?.issues ?? []) {
    const name = String(issue.path[0]);
    // If the variable's file could not be read, that fault is listed already.
    if (!faults.some((fault) => fault.startsWith(`${name}_FILE`))) faults.push(`${name} ${issue.message}`);
  }
  return { given, data, faults };
}

function toConfig(
  env: Environment,
  ofDefault: { readonly secrets: readonly Secret[]; readonly file: string | undefined },
) {
  // Postgres gives up before the driver, and the driver before the answer is due. A statement that ran for longer than its
  // answer's deadline would do no harm if it committed, but its connection would be destroyed for nothing.
  const statementTimeoutMs = Math.round(env.ANSWER_DEADLINE_MS * 0.6);
  return Object.freeze({
    http: Object.freeze({
      host: env.HOST,
      port: env.PORT,
      bodyLimitBytes: env.BODY_LIMIT_BYTES,
      answerDeadlineMs: env.ANSWER_DEADLINE_MS,
      maxConnections: env.MAX_CONNECTIONS,
      maxConnectionsPerAddress: env.MAX_CONNECTIONS_PER_ADDRESS,
      unverifiedBodyBytes: env.UNVERIFIED_BODY_BYTES,
    }),
    proxies: Object.freeze({ trusted: Object.freeze(env.TRUSTED_PROXIES) }),
    operator: Object.freeze({
      host: env.OPERATOR_HOST,
      port: env.OPERATOR_PORT,
      environment: env.ENVIRONMENT,
      requestsPerMinute: env.API_REQUESTS_PER_MINUTE,
      isMetricsOpen: env.METRICS_OPEN,
      queryTimeoutMs: env.OPERATOR_QUERY_TIMEOUT_MS,
      dbConnections: env.OPERATOR_DB_CONNECTIONS,
    }),
    sources: Object.freeze({
      defaultSecrets: Object.freeze(ofDefault.secrets),
      /** Where they come from; it is read again while the service runs. */
      defaultSecretsFile: ofDefault.file,
      file: env.SOURCES_FILE,
      refusedRowsPerMinute: env.REFUSED_ROWS_PER_MINUTE,
    }),
    alerts: Object.freeze({ file: env.ALERTS_FILE }),
    writer: Object.freeze({
      queueDeliveries: env.WRITE_QUEUE_DELIVERIES,
      queueBytes: env.WRITE_QUEUE_BYTES,
      batchDeliveries: env.BATCH_DELIVERIES,
      batchBytes: env.BATCH_BYTES,
      batchesInFlight: env.BATCHES_IN_FLIGHT,
    }),
    database: Object.freeze({
      url: env.DATABASE_URL,
      migrationUrl: env.MIGRATION_DATABASE_URL,
      migrateOnStart: env.MIGRATE_ON_START,
      retentionDays: env.RETENTION_DAYS,
      statementTimeoutMs,
      lockTimeoutMs: Math.round(env.ANSWER_DEADLINE_MS * 0.4),
      queryTimeoutMs: Math.round(env.ANSWER_DEADLINE_MS * 0.7),
    }),
    broker: Object.freeze({
      url: env.AMQP_URL,
      certificates: Object.freeze(certificatesOf(env)),
      exchange: env.AMQP_EXCHANGE,
      routingPrefix: env.AMQP_ROUTING_PREFIX,
      heartbeatS: env.AMQP_HEARTBEAT_S,
      connectTimeoutMs: env.AMQP_CONNECT_TIMEOUT_MS,
      confirmDeadlineMs: env.AMQP_CONFIRM_DEADLINE_MS,
    }),
    management: Object.freeze({
      url: env.BROKER_MANAGEMENT_URL,
      certificates: Object.freeze({ ca: env.BROKER_MANAGEMENT_CA_FILE }),
    }),
    relay: Object.freeze({
      leaseMs: env.RELAY_LEASE_MS,
      pollMs: env.RELAY_POLL_MS,
      inFlight: env.RELAY_IN_FLIGHT,
      inFlightBytes: env.RELAY_IN_FLIGHT_BYTES,
      maxAttempts: env.RELAY_MAX_ATTEMPTS,
    }),
    shutdown: Object.freeze({ delayMs: env.SHUTDOWN_DELAY_MS, graceMs: env.SHUTDOWN_GRACE_MS }),
    log: Object.freeze({ level: env.LOG_LEVEL, pretty: env.LOG_PRETTY }),
  });
}

/** `NAME=` counts as not set: compose files and shells write it so. `loadConfig` reports an empty SIGNING_SECRETS itself. */
function withoutEmpty(env: Env): Record<string, string> {
  const known = [...variables, ...secretVariables.map((name) => `${name}_FILE`)];
  return Object.fromEntries(known.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));
}

function readSecretFiles(env: Record<string, string>, faults: string[]): Record<string, string> {
  const result = { ...env };
  for (const name of secretVariables) {
    const path = env[`${name}_FILE`];
    if (path === undefined) continue;
    if (env[name] !== undefined) {
      faults.push(`${name} and ${name}_FILE are both set: keep one`);
      continue;
    }
    try {
      result[name] = readFileSync(path, 'utf8').trim();
    } catch (error) {
      faults.push(`${name}_FILE cannot be read (${(error as NodeJS.ErrnoException).code})`);
    }
  }
  return result;
}
