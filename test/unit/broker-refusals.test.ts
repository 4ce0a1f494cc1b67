import { expect, test } from 'vitest';
import { refusalOf } from '../../src/base/amqp/broker-refusals.ts';

const place = { address: 'mq:5672', user: 'relay', virtualHost: 'prod' };

/** Frames as a broker sends them: a heartbeat, then connection.close with this text. */
function closing(text: string): Buffer {
  const method = Buffer.from([
    0,
    10,
    0,
    50,
    0x02,
    0x12,
    Buffer.byteLength(text),
    ...Buffer.from(text),
    0,
    10,
    0,
    40,
  ]);
  const size = Buffer.alloc(4);
  size.writeUInt32BE(method.length);
  return Buffer.concat([
    Buffer.from([8, 0, 0, 0, 0, 0, 0, 0xce, 1, 0, 0]),
    size,
    method,
    Buffer.from([0xce]),
  ]);
}

const said = (heard: Buffer, error: unknown = new Error('Expected ConnectionOpenOk')) => {
  const { code, message } = refusalOf(error, heard, place) ?? {};
  return { code, message };
};

test.for([
  [
    'ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile.',
    'access_refused',
    "name or the password of the account 'relay'",
  ],
  ['NOT_ALLOWED - vhost prod not found', 'access_refused', "virtual host 'prod' in the URL does not exist"],
  [
    "NOT_ALLOWED - access to vhost 'prod' refused for user 'relay'",
    'access_refused',
    "account 'relay' has no permissions on the virtual host 'prod'",
  ],
  [
    "NOT_ALLOWED - connection refused for user 'relay': user connection limit (1) is reached",
    'limit_reached',
    "account 'relay' may not have more connections",
  ],
  [
    "NOT_ALLOWED - access to vhost 'prod' refused for user 'relay': connection limit (0) is reached",
    'limit_reached',
    "virtual host 'prod' may not have more connections",
  ],
  [
    'NOT_ALLOWED - connection refused: node connection limit (5) is reached',
    'limit_reached',
    'the broker may not have more connections',
  ],
  [
    "INTERNAL_ERROR - access to vhost 'prod' refused for user 'relay': vhost 'prod' is down",
    'broker_refused',
    "virtual host 'prod' is down",
  ],
  [
    'CONNECTION_FORCED - the node is being drained',
    'broker_refused',
    'refused the connection (CONNECTION_FORCED - the node is being drained)',
  ],
] as const)('%s', ([text, code, sentence]) => {
  expect(said(closing(text))).toEqual({ code, message: expect.stringContaining(sentence) as string });
});

test.for([
  ['HTTP/1.1 400 Bad Request\r\n', 'mq:5672 speaks HTTP and not AMQP'],
  ['\x15\x03\x01\x00\x02\x02\x0a', 'mq:5672 speaks TLS'],
  ['AMQP\x00\x01\x00\x00', 'mq:5672 speaks another version of AMQP'],
] as const)('a server that answers with %j is no broker that we can use', ([beginning, sentence]) => {
  expect(said(Buffer.from(beginning, 'latin1'))).toEqual({
    code: 'wrong_port',
    message: expect.stringContaining(sentence) as string,
  });
});

test('frames that are cut, or hold no close, are no refusal', () => {
  const whole = closing('NOT_ALLOWED - vhost prod not found');
  for (const end of [0, 3, 8, 12, 19])
    expect(refusalOf(new Error('x'), whole.subarray(0, end), place)).toBeUndefined();
  expect(refusalOf(new Error('connect ECONNREFUSED'), Buffer.alloc(0), place)).toBeUndefined();
});
