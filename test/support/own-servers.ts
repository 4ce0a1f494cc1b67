// What a test does to servers of its own: a Postgres that it may stop, kill and freeze, and RabbitMQ's memory alarm.

import { randomBytes } from 'node:crypto';
import {
  type PostgresServer,
  type PostgresSettings,
  startPostgres,
} from '../../scripts/services/postgres.ts';
import type { RabbitmqServer } from '../../scripts/services/rabbitmq.ts';
import type { TestDatabase } from './database.ts';
import { queryOnce } from './transaction.ts';
import { until } from './until.ts';

export type OwnPostgres = AsyncDisposable & {
  readonly server: PostgresServer;
  /** A new, empty database: the replica has to migrate it (MIGRATE_ON_START). */
  readonly createDatabase: () => Promise<TestDatabase>;
};

export async function startOwnPostgres(settings: PostgresSettings = {}): Promise<OwnPostgres> {
  const server = await startPostgres({ settings });
  return {
    server,
    createDatabase: async () => {
      const name = `test_${randomBytes(6).toString('hex')}`;
      await queryOnce(server.url, `create database ${name}`);
      const url = new URL(server.url);
      url.pathname = `/${name}`;
      return {
        url: url.href,
        name,
        query: (text, values) => queryOnce(url.href, text, values),
        [Symbol.asyncDispose]: async () => {
          await queryOnce(server.url, `drop database if exists ${name} with (force)`);
        },
      };
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}

/** The limit that scripts/services/rabbitmq.ts sets. */
const USUAL_LIMIT = '{absolute, 1000000000}';
/** Long, since rabbitmqctl starts slowly on a busy machine. */
const CTL_LIMIT_MS = 90_000;

/** Resolves when the broker confirms it: rabbitmqctl has been seen to succeed without effect. */
export async function setMemoryAlarm(
  broker: Pick<RabbitmqServer, 'ctl'>,
  isAlarming: boolean,
): Promise<void> {
  const limit = isAlarming ? '0.0' : USUAL_LIMIT;
  await until(
    `the memory alarm is ${isAlarming ? 'on' : 'off'}`,
    async () => {
      const alarms = await broker.ctl(
        'eval',
        `vm_memory_monitor:set_vm_memory_high_watermark(${limit}), rabbit_alarm:get_alarms().`,
      );
      return (alarms.trim() !== '[]') === isAlarming ? true : undefined;
    },
    { limitMs: CTL_LIMIT_MS },
  );
}
