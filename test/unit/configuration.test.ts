import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { loadConfig, variables } from '../../src/config.ts';

const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
const table = page.slice(page.indexOf('## Variables'), page.indexOf('## Behind a proxy'));

test('the page on configuration documents every variable that is read, and no other', () => {
  const documented = [...table.matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, names = '']) =>
    [...names.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name),
  );
  expect(new Set(documented)).toEqual(new Set(variables));
});

test('the page on configuration states the defaults that hold', () => {
  const config = loadConfig({
    DATABASE_URL: 'postgres://localhost/x',
    AMQP_URL: 'amqp://localhost',
    SIGNING_SECRETS: 'x'.repeat(16),
  });
  const stated = new Map<string, string>();
  for (const [, names = '', defaults = ''] of table.matchAll(/^\| ([^|]+) \| ([^|]*) \|/gm)) {
    const values = [...defaults.matchAll(/`([^`]+)`/g)].map(([, value]) => value ?? '');
    for (const [index, [, name = '']] of [...names.matchAll(/`([A-Z_]+)`/g)].entries()) {
      stated.set(name, values[index] ?? '');
    }
  }
  expect(Object.fromEntries(stated)).toMatchObject({
    HOST: config.http.host,
    PORT: String(config.http.port),
    OPERATOR_HOST: config.operator.host,
    OPERATOR_PORT: String(config.operator.port),
    ENVIRONMENT: config.operator.environment,
    API_REQUESTS_PER_MINUTE: String(config.operator.requestsPerMinute),
    METRICS_OPEN: String(config.operator.isMetricsOpen),
    OPERATOR_QUERY_TIMEOUT_MS: String(config.operator.queryTimeoutMs),
    OPERATOR_DB_CONNECTIONS: String(config.operator.dbConnections),
    BODY_LIMIT_BYTES: String(config.http.bodyLimitBytes),
    UNVERIFIED_BODY_BYTES: String(config.http.unverifiedBodyBytes),
    ANSWER_DEADLINE_MS: String(config.http.answerDeadlineMs),
    MAX_CONNECTIONS: String(config.http.maxConnections),
    MAX_CONNECTIONS_PER_ADDRESS: String(config.http.maxConnectionsPerAddress),
    REFUSED_ROWS_PER_MINUTE: String(config.sources.refusedRowsPerMinute),
    WRITE_QUEUE_DELIVERIES: String(config.writer.queueDeliveries),
    WRITE_QUEUE_BYTES: String(config.writer.queueBytes),
    BATCH_DELIVERIES: String(config.writer.batchDeliveries),
    BATCH_BYTES: String(config.writer.batchBytes),
    BATCHES_IN_FLIGHT: String(config.writer.batchesInFlight),
    MIGRATE_ON_START: String(config.database.migrateOnStart),
    RETENTION_DAYS: String(config.database.retentionDays),
    AMQP_EXCHANGE: config.broker.exchange,
    AMQP_ROUTING_PREFIX: config.broker.routingPrefix,
    AMQP_HEARTBEAT_S: String(config.broker.heartbeatS),
    AMQP_CONNECT_TIMEOUT_MS: String(config.broker.connectTimeoutMs),
    AMQP_CONFIRM_DEADLINE_MS: String(config.broker.confirmDeadlineMs),
    RELAY_LEASE_MS: String(config.relay.leaseMs),
    RELAY_POLL_MS: String(config.relay.pollMs),
    RELAY_IN_FLIGHT: String(config.relay.inFlight),
    RELAY_IN_FLIGHT_BYTES: String(config.relay.inFlightBytes),
    RELAY_MAX_ATTEMPTS: String(config.relay.maxAttempts),
    SHUTDOWN_DELAY_MS: String(config.shutdown.delayMs),
    SHUTDOWN_GRACE_MS: String(config.shutdown.graceMs),
    LOG_LEVEL: config.log.level,
    LOG_PRETTY: String(config.log.pretty),
  });
});
