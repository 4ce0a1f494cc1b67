// The operators' requests of the benchmark: each list with each filter, with common and with rare values, and the name of
// each in the table.

import { SEEDED } from './audit-seed.ts';

export type AuditCase = {
  readonly list: 'deliveries' | 'events' | 'publications' | 'jobs' | 'quarantine' | 'outbox';
  readonly query: Readonly<Record<string, string>>;
  readonly note: string;
};

const { sources, secrets, addresses, errorCodes, prefixes } = SEEDED;

export const AUDIT_CASES: readonly AuditCase[] = [
  { list: 'deliveries', query: {}, note: 'all' },
  { list: 'deliveries', query: { source: sources.common }, note: 'three of five' },
  { list: 'deliveries', query: { source: sources.rare }, note: 'one in a thousand' },
  { list: 'deliveries', query: { outcome: 'accepted' }, note: 'four of five' },
  { list: 'deliveries', query: { outcome: 'malformed' }, note: 'one in 2,000' },
  { list: 'deliveries', query: { status: 'exploded' }, note: 'one in 200' },
  { list: 'deliveries', query: { kind: 'progress' }, note: 'two of five' },
  { list: 'deliveries', query: { error_code: errorCodes.common }, note: 'one in 150' },
  { list: 'deliveries', query: { error_code: errorCodes.rare }, note: '40 in all' },
  { list: 'deliveries', query: { secret_fingerprint: secrets.old }, note: 'none in ten days' },
  { list: 'deliveries', query: { remote_address: addresses.common }, note: 'one of three' },
  { list: 'deliveries', query: { remote_address: addresses.rare }, note: '200 in all' },
  { list: 'deliveries', query: { job_id_prefix: prefixes.narrow }, note: 'some 20' },
  { list: 'deliveries', query: { job_id_prefix: prefixes.common }, note: 'nearly all' },
  { list: 'deliveries', query: { source: sources.common, outcome: 'quarantined' }, note: 'two filters' },
  { list: 'deliveries', query: { outcome: 'conflict', status: 'processing' }, note: 'two filters, none' },
  { list: 'events', query: {}, note: 'all' },
  { list: 'events', query: { source: sources.second }, note: 'three of ten' },
  { list: 'events', query: { status: 'failed' }, note: 'one in 100' },
  { list: 'events', query: { error_code: errorCodes.rare }, note: '40 in all' },
  { list: 'events', query: { late: 'true' }, note: 'one in 10,000' },
  { list: 'events', query: { job_id_prefix: prefixes.narrow }, note: 'some 20' },
  { list: 'publications', query: {}, note: 'all' },
  { list: 'publications', query: { source: sources.rare }, note: 'one in a thousand' },
  { list: 'publications', query: { result: 'returned' }, note: 'one in 5,000' },
  { list: 'publications', query: { result: 'failed' }, note: 'none' },
  { list: 'publications', query: { job_id_prefix: prefixes.narrow }, note: 'some 20' },
  { list: 'jobs', query: {}, note: 'all' },
  { list: 'jobs', query: { state: 'stuck' }, note: 'one in 200' },
  { list: 'jobs', query: { state: 'failed' }, note: 'one in 50' },
  { list: 'jobs', query: { source: sources.rare }, note: 'one in a thousand' },
  { list: 'jobs', query: { job_id_prefix: prefixes.narrow }, note: 'some ten' },
  { list: 'quarantine', query: {}, note: '5,000 in all' },
  { list: 'quarantine', query: { source: sources.second }, note: 'three of ten' },
  { list: 'outbox', query: {}, note: '20,000 in all, counted' },
  { list: 'outbox', query: { state: 'returned' }, note: 'one in 50' },
];
