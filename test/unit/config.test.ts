import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { type Env, loadConfig, loadUrls, secretVariables, variables } from '../../src/config.ts';
import { ConfigError } from '../../src/base/errors.ts';
import { createFolder } from '../support/folder.ts';
import { secretOf } from '../support/records.ts';

const ONE = 'planted-secret-number-one';
const TWO = 'planted-secret-number-two';
const BASE: Env = {
  DATABASE_URL: 'postgres://tallyhook:planted-password@db:5432/tallyhook',
  AMQP_URL: 'amqp://tallyhook:planted-password@broker:5672/vhost',
  SIGNING_SECRETS: ONE,
};

const compare = (a: string, b: string) => a.localeCompare(b);

/** The faults that are found; throws if none are, or if they quote a value. */
function faultsOf(env: Env): readonly string[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    if (error.message.includes('planted')) throw new Error('a value is quoted', { cause: error });
    return error.faults;
  }
  throw new Error('no fault was found');
}

test('the budget of unverified bodies holds at least one of them', () => {
  expect(faultsOf({ ...BASE, UNVERIFIED_BODY_BYTES: '1048576', BODY_LIMIT_BYTES: '2097152' })).toEqual([
    expect.stringContaining('UNVERIFIED_BODY_BYTES must be at least BODY_LIMIT_BYTES'),
  ]);
});

describe('defaults', () => {
  test('with what has no default given, all the rest has one', () => {
    expect(loadConfig(BASE)).toMatchObject({
      http: {
        host: '0.0.0.0',
        port: 8080,
        bodyLimitBytes: 262_144,
        answerDeadlineMs: 5_000,
        maxConnections: 4_096,
        maxConnectionsPerAddress: 1_100,
        unverifiedBodyBytes: 33_554_432,
      },
      operator: { host: '127.0.0.1', port: 8081 }, // on loopback unless told otherwise
      sources: { file: undefined, refusedRowsPerMinute: 60 },
      database: { url: BASE['DATABASE_URL'], retentionDays: 30 },
      broker: { url: BASE['AMQP_URL'], exchange: 'conversion.events', routingPrefix: 'job' },
      log: { level: 'info', pretty: false },
    });
  });

  test('an empty variable counts as not set, as shells and compose files write it', () => {
    const empty = Object.fromEntries(variables.map((name) => [name, '']));

    expect(loadConfig({ ...empty, ...BASE })).toEqual(loadConfig(BASE));
  });

  test('variables that are none of ours are not looked at', () => {
    expect(loadConfig({ ...BASE, PATH: '/bin', NODE_ENV: 'production', PORTS: 'x' })).toEqual(
      loadConfig(BASE),
    );
  });

  test('Postgres gives up before the driver, and the driver before the answer is due', () => {
    for (const deadline of ['500', '5000', '9500']) {
      const { database, http } = loadConfig({ ...BASE, ANSWER_DEADLINE_MS: deadline });
      expect(database.lockTimeoutMs).toBeLessThan(database.statementTimeoutMs);
      expect(database.statementTimeoutMs).toBeLessThan(database.queryTimeoutMs);
      expect(database.queryTimeoutMs).toBeLessThan(http.answerDeadlineMs);
      expect(http.answerDeadlineMs).toBeLessThan(10_000);
    }
  });

  test('the configuration cannot be changed', () => {
    const config = loadConfig(BASE);

    expect(Object.isFrozen(config)).toBe(true);
    for (const section of Object.values(config)) expect(Object.isFrozen(section)).toBe(true);
    expect(Object.isFrozen(config.sources.defaultSecrets)).toBe(true);
  });

  test('secrets of the configuration cannot be printed', () => {
    const { sources } = loadConfig(BASE);

    expect(JSON.stringify(sources)).not.toContain('planted');
    expect(inspect(sources, { depth: 9, showHidden: true })).not.toContain('planted');
  });
});

describe('faults', () => {
  test('every fault is listed at once, by the name of its variable and never by its value', () => {
    const faults = faultsOf({
      PORT: 'planted',
      OPERATOR_PORT: '65536',
      BODY_LIMIT_BYTES: '-1',
      ANSWER_DEADLINE_MS: '10000',
      DATABASE_URL: 'mysql://planted@db',
      SIGNING_SECRETS: 'planted',
      MIGRATE_ON_START: 'planted',
      LOG_LEVEL: 'planted',
      AMQP_EXCHANGE: 'planted exchange',
      RETENTION_DAYS: '1.5',
    });

    expect(faults.map((fault) => fault.split(' ')[0] ?? '').toSorted(compare)).toEqual([
      'AMQP_EXCHANGE',
      'AMQP_URL',
      'ANSWER_DEADLINE_MS',
      'BODY_LIMIT_BYTES',
      'DATABASE_URL',
      'LOG_LEVEL',
      'MIGRATE_ON_START',
      'OPERATOR_PORT',
      'PORT',
      'RETENTION_DAYS',
      'SIGNING_SECRETS',
    ]);
    expect(faults).toContain('AMQP_URL must be set');
    expect(faults).toContain('PORT must be a whole number');
    expect(faults).toContain('ANSWER_DEADLINE_MS must be at most 9500');
  });

  test('an empty environment names what has to be set', () => {
    expect(faultsOf({})).toEqual([
      'DATABASE_URL must be set',
      'AMQP_URL must be set',
      'SIGNING_SECRETS must be set (or SIGNING_SECRETS_FILE, or SOURCES_FILE): nobody could send',
    ]);
  });

  test.for([
    ['DATABASE_URL', 'planted'],
    ['DATABASE_URL', 'http://planted@db'],
    ['AMQP_URL', 'planted'],
    ['AMQP_URL', 'postgres://planted@broker'],
    ['PORT', ' 8080'],
    ['PORT', '1e3'],
    ['PORT', '8080.0'],
    ['MIGRATE_ON_START', 'yes'],
    ['WRITE_QUEUE_DELIVERIES', '0'],
    ['BATCH_DELIVERIES', '5001'],
    ['RELAY_LEASE_MS', '100'],
    ['LOG_LEVEL', 'INFO'],
  ] as const)('%s=%s is a fault', ([name, value]) => {
    expect(faultsOf({ ...BASE, [name]: value })).toEqual([expect.stringContaining(name)]);
  });

  test('the least and the greatest value are allowed', () => {
    expect(loadConfig({ ...BASE, PORT: '0' }).http.port).toBe(0);
    expect(loadConfig({ ...BASE, PORT: '65535' }).http.port).toBe(65_535);
  });

  test('amqps, vhosts, host names without a dot and postgresql:// are fine', () => {
    const config = loadConfig({
      ...BASE,
      AMQP_URL: 'amqps://u:p@rabbit/%2Fprod',
      DATABASE_URL: 'postgresql://u:p@db/x?sslmode=require',
    });

    expect(config.broker.url).toBe('amqps://u:p@rabbit/%2Fprod');
  });
});

describe('SIGNING_SECRETS', () => {
  test('several are valid at once, and white space around them is not part of them', () => {
    const { defaultSecrets } = loadConfig({ ...BASE, SIGNING_SECRETS: ` ${ONE} ,\t${TWO}\n` }).sources;

    expect(defaultSecrets.map(({ fingerprint }) => fingerprint)).toEqual([
      secretOf(ONE).fingerprint,
      secretOf(TWO).fingerprint,
    ]);
  });

  test.for([
    ['', 'SIGNING_SECRETS entry 1 is empty'],
    ['  ', 'SIGNING_SECRETS entry 1 is empty'],
    [',', 'SIGNING_SECRETS entry 1 is empty'],
    [`${ONE},`, 'SIGNING_SECRETS entry 2 is empty'],
    [`${ONE},planted`, 'SIGNING_SECRETS entry 2 is shorter than 16 bytes'],
    ['planted,planted', 'SIGNING_SECRETS entry 1 is shorter than 16 bytes'],
    [Array.from({ length: 9 }, () => ONE).join(','), 'SIGNING_SECRETS has more than 8 entries'],
    [`${ONE}\n${TWO}\n`, 'SIGNING_SECRETS entry 1 has a line break in it: separate secrets by commas'],
    [`${ONE},${ONE}\r${TWO}`, 'SIGNING_SECRETS entry 2 has a line break in it: separate secrets by commas'],
    [`${ONE} ${TWO}`, 'SIGNING_SECRETS entry 1 has white space in it: separate secrets by commas'],
    [`"${ONE}","${TWO}"`, 'SIGNING_SECRETS entry 2 has quotes around it: write it without them'],
    [`'${ONE}'`, 'SIGNING_SECRETS entry 1 has quotes around it: write it without them'],
    ...[[ONE, TWO], { default: { secrets: [ONE, TWO] } }].map(
      (json) =>
        [
          `${JSON.stringify(json, null, 2)}\n`,
          'SIGNING_SECRETS is JSON, and takes only secrets, separated by commas; JSON belongs in SOURCES_FILE',
        ] as const,
    ),
  ] as const)('%j is refused: %s', ([list, fault]) => {
    expect(faultsOf({ ...BASE, SIGNING_SECRETS: list })).toContain(fault);
  });

  test.for(['a"quote-within-planted', '"at-its-begin-planted', '{braces-are-no-json}', '1234567890123456'])(
    'a secret may look like %s',
    (secret) => {
      expect(loadConfig({ ...BASE, SIGNING_SECRETS: secret }).sources.defaultSecrets[0]?.fingerprint).toBe(
        secretOf(secret).fingerprint,
      );
    },
  );

  test('an empty list is a fault even where SOURCES_FILE names other senders', () => {
    expect(faultsOf({ ...BASE, SIGNING_SECRETS: '', SOURCES_FILE: '/etc/sources.json' })).toEqual([
      'SIGNING_SECRETS entry 1 is empty',
    ]);
  });

  test('without them, SOURCES_FILE will do', () => {
    const { SIGNING_SECRETS: _left, ...rest } = BASE;

    expect(loadConfig({ ...rest, SOURCES_FILE: '/etc/sources.json' }).sources).toMatchObject({
      defaultSecrets: [],
      file: '/etc/sources.json',
    });
  });
});

const noRange = (place: number) =>
  `TRUSTED_PROXIES entry ${place} must be an IP address or a CIDR range, such as 10.0.0.0/8`;

describe('TRUSTED_PROXIES', () => {
  test('is nobody unless it is set, and a list of addresses and ranges', () => {
    expect(loadConfig(BASE).proxies.trusted).toEqual([]);
    expect(loadConfig({ ...BASE, TRUSTED_PROXIES: ' 10.0.0.0/8,2001:db8::7 ' }).proxies.trusted).toEqual([
      '10.0.0.0/8',
      '2001:db8::7',
    ]);
  });

  test('each entry that is neither is told by its place', () => {
    expect(faultsOf({ ...BASE, TRUSTED_PROXIES: 'planted,10.0.0.0/8,10.0.0.0/33,' })).toEqual(
      [1, 3, 4].map(noRange),
    );
    expect(faultsOf({ ...BASE, TRUSTED_PROXIES: '10.0.0.1,'.repeat(1_000) })).toEqual([
      'TRUSTED_PROXIES has more than 1000 entries',
      noRange(1_001),
    ]);
  });
});

describe('values from files', () => {
  test('each secret can come from the file that NAME_FILE names, line break at the end and all', async () => {
    await using folder = await createFolder();
    const env: Env = {
      SIGNING_SECRETS_FILE: await folder.write('secrets', `${ONE},${TWO}\n`),
      DATABASE_URL_FILE: await folder.write('database', `${BASE['DATABASE_URL']}\n`),
      AMQP_URL_FILE: await folder.write('amqp', `${BASE['AMQP_URL']}\n`),
    };

    const { sources, ...others } = loadConfig({ ...BASE, SIGNING_SECRETS: `${ONE},${TWO}` });
    expect(loadConfig(env)).toEqual({
      ...others,
      // It is read again while the service runs.
      sources: { ...sources, defaultSecretsFile: env['SIGNING_SECRETS_FILE'] },
    });
    expect(sources.defaultSecretsFile).toBeUndefined();
    expect(loadUrls(env)).toEqual({ databaseUrl: BASE['DATABASE_URL'] });
    expect(secretVariables).toEqual([
      'SIGNING_SECRETS',
      'DATABASE_URL',
      'MIGRATION_DATABASE_URL',
      'AMQP_URL',
      'BROKER_MANAGEMENT_URL',
    ]);
  });

  test('who migrates may be another than who runs, from a file too', async () => {
    await using folder = await createFolder();
    const url = 'postgres://owner:planted@db/tallyhook';
    const env = { ...BASE, MIGRATION_DATABASE_URL_FILE: await folder.write('migration', `${url}\n`) };

    expect(loadUrls(env)).toEqual({ databaseUrl: BASE['DATABASE_URL'], migrationUrl: url });
    expect(loadConfig(env).database).toMatchObject({ url: BASE['DATABASE_URL'], migrationUrl: url });
  });

  test('NAME and NAME_FILE together are a fault, since nobody can say which one is meant', async () => {
    await using folder = await createFolder();
    const file = await folder.write('secrets', TWO);

    const all = {
      ...BASE,
      MIGRATION_DATABASE_URL: BASE['DATABASE_URL'],
      BROKER_MANAGEMENT_URL: 'http://look:planted@broker:15672',
    };
    for (const name of secretVariables) {
      expect(faultsOf({ ...all, [`${name}_FILE`]: file })).toContain(
        `${name} and ${name}_FILE are both set: keep one`,
      );
    }
  });

  test('a file that cannot be read is named by its variable, once', async () => {
    await using folder = await createFolder();

    expect(
      faultsOf({
        SIGNING_SECRETS_FILE: folder.path('planted'),
        DATABASE_URL_FILE: folder.path('planted'),
        AMQP_URL_FILE: folder.path('.'),
      }),
    ).toEqual([
      'SIGNING_SECRETS_FILE cannot be read (ENOENT)',
      'DATABASE_URL_FILE cannot be read (ENOENT)',
      'AMQP_URL_FILE cannot be read (EISDIR)',
    ]);
  });

  test('an empty or short secret in a file is refused as one in the environment', async () => {
    await using folder = await createFolder();
    const { SIGNING_SECRETS: _left, ...rest } = BASE;
    const empty = await folder.write('empty', '\n');
    const short = await folder.write('short', `${ONE},planted`);

    expect(faultsOf({ ...rest, SIGNING_SECRETS_FILE: empty })).toEqual(['SIGNING_SECRETS entry 1 is empty']);
    expect(faultsOf({ ...rest, SIGNING_SECRETS_FILE: short })).toEqual([
      'SIGNING_SECRETS entry 2 is shorter than 16 bytes',
    ]);
  });

  test('a URL in a file is checked, too', async () => {
    await using folder = await createFolder();
    const { DATABASE_URL: _left, ...rest } = BASE;

    expect(faultsOf({ ...rest, DATABASE_URL_FILE: await folder.write('url', '') })).toEqual([
      expect.stringContaining('DATABASE_URL must be a URL'),
    ]);
  });
});

describe('the management API', () => {
  const url = 'https://look:planted-password@broker:15671';

  test('is not asked unless its address is given', () => {
    expect(loadConfig(BASE).management).toEqual({ url: undefined, certificates: { ca: undefined } });
    expect(loadConfig({ ...BASE, BROKER_MANAGEMENT_URL: url }).management.url).toBe(url);
  });

  test.for([
    'amqp://look:planted-password@broker',
    'http://broker:15672',
    'http://look@broker:15672',
    'http://look:planted-password@broker:15672/?planted=1',
  ])('an address that cannot be used is a fault, which does not quote it: %s', (wrong) => {
    expect(faultsOf({ ...BASE, BROKER_MANAGEMENT_URL: wrong })).toEqual([
      expect.stringMatching(/^BROKER_MANAGEMENT_URL must /),
    ]);
  });

  test('a CA without https, or that is none, is a fault', async () => {
    await using folder = await createFolder();
    const path = await folder.write('ca.pem', 'planted');
    const http = url.replace('https', 'http');
    expect(faultsOf({ ...BASE, BROKER_MANAGEMENT_URL: http, BROKER_MANAGEMENT_CA_FILE: path })).toEqual([
      'BROKER_MANAGEMENT_CA_FILE would have no effect: BROKER_MANAGEMENT_URL has to begin with https://',
    ]);
    expect(faultsOf({ ...BASE, BROKER_MANAGEMENT_URL: url, BROKER_MANAGEMENT_CA_FILE: path })).toEqual([
      'BROKER_MANAGEMENT_CA_FILE: the CA is no certificate in PEM',
    ]);
    expect(
      faultsOf({ ...BASE, BROKER_MANAGEMENT_URL: url, BROKER_MANAGEMENT_CA_FILE: `${path}.no` }),
    ).toEqual(['BROKER_MANAGEMENT_CA_FILE cannot be read (ENOENT)']);
  });
});
