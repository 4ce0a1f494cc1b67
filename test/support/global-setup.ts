// Migrates the template database, which each test copies in milliseconds. Once in a run: two projects name this file.

import { connect } from 'amqplib';
import { pino } from 'pino';
import { connectDatabase } from '../../src/ledger/sessions/database.ts';
import { migrate } from '../../src/ledger/schema/migrate.ts';
import { makePartitions } from '../../src/ledger/upkeep/partitions.ts';
import { amqpUrl, UNHEARD } from './bus.ts';
import { createTemplate, dropTestDatabases } from './database.ts';

const IS_DONE = 'TEST_TEMPLATE_IS_MADE';

export async function setup(): Promise<() => Promise<void>> {
  if (process.env[IS_DONE] !== undefined) return async () => {};
  process.env[IS_DONE] = 'true';
  const template = await createTemplate();
  await migrate(template);
  await withPartitions(template);
  return async () => {
    if (process.env['TEST_POSTGRES_IS_THROWN_AWAY'] !== 'true') await dropTestDatabases();
    const connection = await connect(amqpUrl());
    const channel = await connection.createChannel();
    await channel.deleteExchange(UNHEARD);
    await connection.close();
  };
}

/** So that services need not make them and start sooner. */
async function withPartitions(url: string): Promise<void> {
  const connection = connectDatabase({
    url,
    name: 'template',
    connections: 1,
    statementTimeoutMs: 10_000,
    lockTimeoutMs: 10_000,
    queryTimeoutMs: 11_000,
    log: pino({ level: 'silent' }),
  });
  await makePartitions(connection);
  // Tests that record without a service count from 1.
  await connection.execute({ name: 'restart', text: 'alter sequence events_sequence_seq restart' }, []);
  await connection.close();
}
