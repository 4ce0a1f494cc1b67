// Why a request got no answer, in words for the one who asked.

import { describeError } from '../base/errors.ts';
import { HTTPS_WORDS, tlsFaultOf } from '../base/net/tls-fault.ts';

const NO_ADDRESS = ['ENOTFOUND', 'EAI_AGAIN'];
const CLOSED = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'];
const NO_ROUTE = ['ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL'];

/** Whether it is this machine that has no way there. */
export const isUnrouted = (error: unknown): boolean => NO_ROUTE.includes(describeError(error).code ?? '');

/** `host`: with the port. */
export function reasonOf(error: unknown, { host, hostname }: Pick<URL, 'host' | 'hostname'>): string {
  const { code = '', message } = describeError(error);
  if (code === 'ECONNREFUSED') return `nothing listens at ${host}`;
  if (NO_ADDRESS.includes(code)) return `the name ${hostname} has no address`;
  if (isUnrouted(error)) return `this machine has no way to ${host}`;
  if (CLOSED.includes(code)) return 'the connection was closed without an answer';
  if (code.startsWith('HPE_')) return `what listens at ${host} does not speak HTTP`;
  return tlsFaultOf(error, { address: host, ...HTTPS_WORDS }) ?? message;
}
