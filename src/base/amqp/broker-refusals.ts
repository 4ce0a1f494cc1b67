// Why a broker, or whoever answers at its address, does not let us connect: one table, for the relay and the subscriber. Pure: it
// reads the error and the bytes that came, and knows no connection.

import { BrokerRefusalError } from '../errors.ts';
import { tlsFaultOf } from '../net/tls-fault.ts';

type Code = BrokerRefusalError['code'];

/** What the sentences name: no password. */
export type Place = { readonly address: string; readonly user: string; readonly virtualHost: string };

/** @param text the broker's reason, as `NOT_ALLOWED - vhost a not found` */
type Sentence = (place: Place, text: string) => string;

/** What a broker says when it closes a connection that is being opened. The first that matches counts; the last one always does. */
const CLOSINGS: readonly (readonly [RegExp, Code, Sentence])[] = [
  [
    /^ACCESS_REFUSED - Login was refused/,
    'access_refused',
    ({ user }) =>
      `the broker refused the name or the password of the account '${user}' (from another machine, the account 'guest' is refused by default)`,
  ],
  [
    /vhost .* not found$/,
    'access_refused',
    ({ virtualHost }) =>
      `the virtual host '${virtualHost}' in the URL does not exist: correct the URL, or make it with rabbitmqctl add_vhost '${virtualHost}'`,
  ],
  [
    /user connection limit \(\d+\) is reached/,
    'limit_reached',
    ({ user }, text) => `the account '${user}' may not have more connections (${text})`,
  ],
  [
    /access to vhost .* connection limit \(\d+\) is reached/,
    'limit_reached',
    ({ virtualHost }, text) => `the virtual host '${virtualHost}' may not have more connections (${text})`,
  ],
  [
    /connection limit \(\d+\) is reached/,
    'limit_reached',
    (_, text) => `the broker may not have more connections (${text})`,
  ],
  [
    /vhost .* is down$/,
    'broker_refused',
    ({ virtualHost }) =>
      `the virtual host '${virtualHost}' is down at the broker: its log says why; rabbitmqctl restart_vhost starts it again`,
  ],
  [
    /^NOT_ALLOWED - access to vhost .* refused for user/,
    'access_refused',
    ({ user, virtualHost }) =>
      `the account '${user}' has no permissions on the virtual host '${virtualHost}': give it some with rabbitmqctl set_permissions`,
  ],
  [/^/, 'broker_refused', (_, text) => `the broker refused the connection (${text})`],
];

/** How bytes begin that are no AMQP 0-9-1. */
const STRANGERS: readonly (readonly [RegExp, Sentence])[] = [
  [
    /^HTTP\//,
    ({ address }) =>
      `${address} speaks HTTP and not AMQP: the URL needs the broker's AMQP port, usually 5672, or 5671 with amqps://`,
  ],
  // A TLS record: an alert, or a handshake.
  // oxlint-disable-next-line no-control-regex -- these are bytes
  [/^[\x15\x16]\x03/, ({ address }) => `${address} speaks TLS: the URL has to begin with amqps://`],
  [/^AMQP/, ({ address }) => `${address} speaks another version of AMQP than 0-9-1`],
];

/** OpenSSL's reasons for an answer that is no TLS. */
const NO_TLS: ReadonlySet<unknown> = new Set([
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
]);

/**
 * The reason in the words of whoever has to change something; undefined if nobody refused us, as when no server listens.
 * @param heard what the server has sent, decrypted
 */
export function refusalOf(error: unknown, heard: Buffer, place: Place): BrokerRefusalError | undefined {
  const refused = (code: Code, message: string) => new BrokerRefusalError(code, message, { cause: error });
  if (NO_TLS.has((error as { code?: unknown } | null)?.code)) {
    return refused(
      'wrong_port',
      `${place.address} does not speak TLS: the URL has to begin with amqp://, or to name the port for TLS, usually 5671`,
    );
  }
  const beginning = heard.toString('latin1', 0, 8);
  const stranger = STRANGERS.find(([pattern]) => pattern.test(beginning));
  if (stranger !== undefined) return refused('wrong_port', stranger[1](place, ''));
  const fault = tlsFaultOf(error, { address: place.address, ...WORDS });
  if (fault !== undefined) return refused('tls_failed', fault);
  const text = closingTextIn(heard);
  if (text === undefined) return undefined;
  const closing = CLOSINGS.find(([pattern]) => pattern.test(text));
  return closing && refused(closing[1], closing[2](place, text));
}

/** Of the service, and of a subscriber's options. */
const WORDS = {
  trust: 'AMQP_CA_FILE (a subscriber: tls.ca)',
  certificate: 'AMQP_CERT_FILE and AMQP_KEY_FILE (a subscriber: tls.cert and tls.key)',
};

const METHOD_FRAME = 1;
/** Class 10, method 50. */
const CONNECTION_CLOSE = 0x000a_0032;
const HEAD_BYTES = 7;
/** Behind the method: the reply code, two bytes, and the text's length, one byte. */
const TEXT_AT = 7;

/** The reply text of a connection.close among these frames (AMQP 0-9-1, 2.3.5 and 1.4.2.3). */
function closingTextIn(heard: Buffer): string | undefined {
  for (let at = 0; at + HEAD_BYTES <= heard.length; ) {
    const end = at + HEAD_BYTES + heard.readUInt32BE(at + 3);
    const payload = heard.subarray(at + HEAD_BYTES, end);
    const isClose =
      heard[at] === METHOD_FRAME && payload.length > TEXT_AT && payload.readUInt32BE(0) === CONNECTION_CLOSE;
    if (isClose) return payload.toString('utf8', TEXT_AT, TEXT_AT + (payload[TEXT_AT - 1] as number));
    at = end + 1; // behind the byte that ends a frame
  }
  return undefined;
}
