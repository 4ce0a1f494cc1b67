// Migrates one template database; each test clones it in milliseconds.

import { connect } from 'amqplib';
import { Client } from 'pg';
import { pino } from 'pino';
import { connectDatabase } from '../../src/ledger/database.ts';
import { migrate } from '../../src/ledger/migrate.ts';
import { makePartitions } from '../../src/ledger/partitions.ts';
import { amqpUrl, UNHEARD } from './bus.ts';
import { databaseUrl, TEMPLATE } from './database.ts';

export async function setup(): Promise<() => Promise<void>> {
  const drop = () => onServer(`drop database if exists ${TEMPLATE} with (force)`);
  await drop();
  await onServer(`create database ${TEMPLATE}`);
  await migrate(databaseUrl(TEMPLATE));
  await withPartitions(databaseUrl(TEMPLATE));
  return async () => {
    await drop();
    const connection = await connect(amqpUrl());
    const channel = await connection.createChannel();
    await channel.deleteExchange(UNHEARD);
    await connection.close();
  };
}

/** So that each service finds them there and starts sooner. */
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
  await connection.close();
}

async function onServer(statement: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl() });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
