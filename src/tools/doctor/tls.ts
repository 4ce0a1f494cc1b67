// The check `tls`: the protocol, and the certificate as a sender judges it. For http it says what that means.

import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { certificateNames } from '../../base/net/tls-fault.ts';
import { reasonOf } from '../../terminal/no-answer.ts';
import { counted } from '../../terminal/readable.ts';
import { hostOf, isLoopback, portOf } from './address.ts';
import { type Finding, failed, ok, warning } from './finding.ts';
import type { Endpoint } from './probe.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
/** Renewal by ACME happens 30 days before the end. So at this point it has failed for two weeks. */
const WARN_DAYS = 14;

export async function checkTls(endpoint: Endpoint): Promise<Finding> {
  const { url } = endpoint;
  if (url.protocol === 'https:') return checkHttps(endpoint);
  if (isLoopback(url)) return ok('tls', 'plain http, which stays on this machine');
  return warning('tls', {
    found:
      'plain http: everybody on the way can read the notifications. The conversion service calls https addresses only',
    mend: 'put a proxy with a certificate in front, and give senders its https address',
  });
}

async function checkHttps({ url, timeoutMs }: Endpoint): Promise<Finding> {
  try {
    return judgeTls(await shakeHands(url, timeoutMs), { host: hostOf(url), nowMs: Date.now() });
  } catch (error) {
    const mend = 'let the port speak TLS 1.2 or 1.3. An http port has an http:// address';
    return failed('tls', { found: `there is no TLS connection: ${reasonOf(error, url)}`, mend });
  }
}

/** A port that speaks TLS answers soon. */
const SUSPICION_MS = 1_000;

/** Whether the address is one of http, although its port speaks TLS. */
export async function isTlsByMistake({ url, timeoutMs }: Endpoint): Promise<boolean> {
  if (url.protocol === 'https:') return false;
  return shakeHands(url, Math.min(timeoutMs, SUSPICION_MS)).then(
    () => true,
    () => false,
  );
}

/** What a handshake showed. `fault`: why the certificate is not trusted, as Node names it. */
export type Handshake = {
  readonly protocol: string;
  readonly fault: string | undefined;
  readonly names: string;
  readonly fromMs: number;
  readonly toMs: number;
};

function shakeHands(url: URL, timeoutMs: number): Promise<Handshake> {
  const host = hostOf(url);
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: portOf(url),
      ...(isIP(host) === 0 && { servername: host }),
      // It is judged here, so that the answer can say what is wrong with it. Nothing is sent on this connection.
      rejectUnauthorized: false,
      ALPNProtocols: ['http/1.1'],
    });
    const end = (settle: () => void) => {
      clearTimeout(timer);
      settle();
      socket.destroy();
    };
    const timer = setTimeout(() => end(() => reject(new Error('it took too long'))), timeoutMs);
    socket.once('secureConnect', () => end(() => resolve(seenOn(socket))));
    socket.once('error', (error) => end(() => reject(error)));
  });
}

function seenOn(socket: TLSSocket): Handshake {
  const { subjectaltname, valid_from: from, valid_to: to } = socket.getPeerCertificate();
  return {
    protocol: socket.getProtocol() ?? 'TLS',
    // An error's code, whatever the types say.
    fault: socket.authorized ? undefined : String(socket.authorizationError),
    names: certificateNames(subjectaltname),
    fromMs: Date.parse(from),
    toMs: Date.parse(to),
  };
}

/** Pure. */
export function judgeTls(seen: Handshake, { host, nowMs }: { host: string; nowMs: number }): Finding {
  const { protocol, fault, toMs } = seen;
  if (fault !== undefined) return failed('tls', faultOf(fault, seen, host));
  const days = Math.floor((toMs - nowMs) / DAY_MS);
  const details = { protocol, valid_to: new Date(toMs).toISOString(), days_left: days };
  const words = `the certificate is valid for ${counted(days, 'day')} more, until ${dateOf(toMs)}`;
  if (days >= WARN_DAYS) return ok('tls', `${protocol}, ${words}`, details);
  return warning(
    'tls',
    { found: words, mend: 'renew it, and see why it was not renewed by itself' },
    details,
  );
}

type Fault = { readonly found: string; readonly mend: string };

function faultOf(code: string, { names, fromMs, toMs }: Handshake, host: string): Fault {
  switch (code) {
    case 'CERT_HAS_EXPIRED':
      return {
        found: `the certificate has ended on ${dateOf(toMs)}`,
        mend: 'renew it, and reload the proxy',
      };
    case 'CERT_NOT_YET_VALID':
      return {
        found: `the certificate is valid from ${dateOf(fromMs)} on only`,
        mend: 'check the clocks of this machine and of the one that made it',
      };
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return {
        found: `the certificate is not for ${host}, but for ${names}`,
        mend: `get one for ${host}, or let the proxy choose the right one for this name`,
      };
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
      return { found: 'the certificate is signed by itself, or by an authority of your own', mend: TRUST };
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
      return {
        found: 'the authority that signed the certificate is not known here',
        mend: `if it is a public one, let the proxy send the whole chain (nginx: fullchain.pem). Otherwise: ${TRUST}`,
      };
    default:
      return { found: `the certificate is not trusted (${code})`, mend: TRUST };
  }
}

const TRUST =
  'use a certificate of a public authority. If your senders trust one of your own, name it to this command, too: NODE_EXTRA_CA_CERTS=ca.pem';

const dateOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
