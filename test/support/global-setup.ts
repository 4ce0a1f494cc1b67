// Migrates one template database; each test clones it in milliseconds.

import { Client } from 'pg';
import { migrate } from '../../src/ledger/migrate.ts';
import { databaseUrl, TEMPLATE } from './database.ts';

export async function setup(): Promise<() => Promise<void>> {
  const drop = () => onServer(`drop database if exists ${TEMPLATE} with (force)`);
  await drop();
  await onServer(`create database ${TEMPLATE}`);
  await migrate(databaseUrl(TEMPLATE));
  return drop;
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
