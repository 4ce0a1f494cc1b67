import { EventEmitter } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { type ConnectionLimits, createConnections, originOf } from '../../../src/http/connections.ts';
import type { ConnectionEnd } from '../../../src/base/closed-sets.ts';
import { closeAfter } from '../../../src/http/errors.ts';
import { createTestLog } from '../../support/test-log.ts';

type FakeSocket = Socket & { readonly destroyed: boolean };

/** A socket as far as connections look at one. */
function socketFrom(remoteAddress: string): FakeSocket {
  const socket = Object.assign(new EventEmitter(), {
    remoteAddress,
    writableLength: 0,
    destroyed: false,
    destroy: () => {
      socket.destroyed = true;
      socket.emit('close');
    },
  });
  return socket as unknown as FakeSocket;
}

/** An answer under way on it, to a request that is there as a whole or not. */
function answerOn(socket: Socket, { complete = true } = {}) {
  const response = Object.assign(new EventEmitter(), { req: { socket, complete }, writableEnded: false });
  return {
    response: response as unknown as ServerResponse,
    /** All of it is written, and none of it taken. */
    write: () => {
      response.writableEnded = true;
    },
    finish: () => response.emit('close'),
  };
}

const isProxy = (address: string) => address === '192.0.2.1';

function create(
  limits: Partial<ConnectionLimits> = {},
  { isExempt }: { isExempt?: (address: string) => boolean } = {},
) {
  const { log, lines } = createTestLog();
  const ends: ConnectionEnd[] = [];
  let nowMs = 0;
  const connections = createConnections({
    name: 'test',
    limits: { connections: 10, perAddress: 10, ...limits },
    ...(isExempt && { isExempt }),
    now: () => nowMs,
    log,
    observe: (end) => ends.push(end),
  });
  const connect = (address = '192.0.2.1') => {
    const socket = socketFrom(address);
    connections.admit(socket);
    return socket;
  };
  /** Asks something on it and gets its answer, at this time. */
  const ask = (socket: Socket, { trusted = false } = {}) => {
    const answer = answerOn(socket);
    connections.begin(answer.response);
    if (trusted) connections.trust(answer.response);
    answer.finish();
  };
  const wait = (ms: number) => {
    nowMs += ms;
  };
  return { connections, connect, ask, wait, ends, lines };
}

describe('when all are taken', () => {
  test('the one that is idle for longest makes room', () => {
    const { connections, connect, ask, wait, ends } = create({ connections: 2 });
    const [first, second] = [connect(), connect()];
    wait(1);
    ask(first); // idle since now

    const third = connect();

    expect([first, second, third].map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
    expect(ends).toEqual(['room']);
    expect(connections.open()).toBe(2);
  });

  test('one that brought a verified delivery stays as long as a stranger’s can make room', () => {
    const { connect, ask, wait } = create({ connections: 2 });
    const sender = connect();
    ask(sender, { trusted: true });
    wait(60_000);
    const stranger = connect();

    const next = connect();
    expect([sender, stranger, next].map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
    ask(next, { trusted: true });
    connect();
    expect(sender.destroyed).toBe(true); // now it was idle for longest of those that did
  });

  test('none with a request under way is ended: the new one is turned away, and the state tells', () => {
    const { connections, connect, ends } = create({ connections: 2 });
    const busy = [connect(), connect()];
    expect(connections.state()).toBe('room');
    const answers = busy.map((socket) => answerOn(socket));
    for (const { response } of answers) connections.begin(response);
    expect(connections.state()).toBe('full');

    expect(connect().destroyed).toBe(true);
    expect(busy.every(({ destroyed }) => !destroyed)).toBe(true);
    expect(ends).toEqual(['full']);

    answers[0]?.finish();
    expect(connections.state()).toBe('room');
    expect(connect().destroyed).toBe(false);
  });

  test('a stranger in the middle of a request makes room, the longest first, before an idle sender does', () => {
    const { connections, connect, ask } = create({ connections: 3 });
    const sender = connect();
    ask(sender, { trusted: true });
    const slow = [connect(), connect()];
    for (const socket of slow) connections.begin(answerOn(socket, { complete: false }).response);
    expect(connections.state()).toBe('room');

    const next = connect();
    connections.begin(answerOn(next).response);
    expect([sender, ...slow].map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
    connect();
    expect([sender, ...slow].map(({ destroyed }) => destroyed)).toEqual([false, true, true]);
  });

  test('a sender in the middle of a request is never ended, nor a stranger with another request that is whole', () => {
    const { connections, connect, ask, ends } = create({ connections: 2 });
    const [sender, stranger] = [connect(), connect()];
    ask(sender, { trusted: true });
    connections.begin(answerOn(sender, { complete: false }).response);
    connections.begin(answerOn(stranger).response);
    connections.begin(answerOn(stranger, { complete: false }).response);

    expect(connect().destroyed).toBe(true);
    expect(ends).toEqual(['full']);
  });

  test('a stranger’s whole request is ended where nothing is lost by it, and a sender’s is not', () => {
    const { connections, connect, ask, ends } = create({ connections: 2, endsRequests: true });
    const [sender, stranger] = [connect(), connect()];
    ask(sender, { trusted: true });
    connections.begin(answerOn(sender).response);
    connections.begin(answerOn(stranger).response);
    expect(connections.state()).toBe('room');

    const next = connect();
    expect([sender, stranger, next].map(({ destroyed }) => destroyed)).toEqual([false, true, false]);
    connections.trust(answerOn(next).response);
    connections.begin(answerOn(next).response);
    expect(connect().destroyed).toBe(true);
    expect(ends).toEqual(['room', 'full']);
  });

  test('with several requests under way a connection is idle after the last', () => {
    const { connections, connect } = create({ connections: 1 });
    const socket = connect();
    const [one, two] = [answerOn(socket), answerOn(socket)];
    expect([one, two].map(({ response }) => connections.begin(response))).toEqual([1, 2]);
    expect(connections.underWay(socket)).toEqual([one.response, two.response]);

    one.finish();
    expect(connections.state()).toBe('full');
    two.finish();
    expect(connections.state()).toBe('room');
  });
});

describe('an address', () => {
  test('has its share: beyond it, its connection that is idle for longest makes room', () => {
    const { connect } = create({ perAddress: 2 });
    const other = connect('192.0.2.9');
    const own = [connect(), connect(), connect()];

    expect(other.destroyed).toBe(false);
    expect(own.map(({ destroyed }) => destroyed)).toEqual([true, false, false]);
  });

  test('whose connections are all busy is turned away, and others are not', () => {
    const { connections, connect, ends } = create({ perAddress: 1 });
    connections.begin(answerOn(connect()).response);

    expect(connect().destroyed).toBe(true);
    expect(ends).toEqual(['address']);
    expect(connections.state()).toBe('room');
    expect(connect('192.0.2.9').destroyed).toBe(false);
  });

  test('gets back what is closed', () => {
    const { connections, connect, ends } = create({ perAddress: 1 });
    for (let count = 0; count < 5; count++) connect().destroy();

    expect(connections.open()).toBe(0);
    expect(ends).toEqual([]);
  });

  test('that is exempt has only the total limit', () => {
    const { connect } = create({ connections: 5, perAddress: 1 }, { isExempt: isProxy });

    expect([connect(), connect(), connect()].map(({ destroyed }) => destroyed)).toEqual([
      false,
      false,
      false,
    ]);
  });

  test.for([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::ffff:c000:201', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ] as const)('%s is counted as %s', ([address, origin]) => {
    expect(originOf(address)).toBe(origin);
  });
});

describe('an idle connection', () => {
  test('of a stranger is ended after 5 s, one that brought a verified delivery is not', () => {
    const { connections, connect, ask, wait, ends, lines } = create();
    const [stranger, sender] = [connect(), connect()];
    ask(stranger);
    ask(sender, { trusted: true });
    wait(4_999);
    connections.sweep();
    expect(stranger.destroyed).toBe(false);

    wait(2);
    connections.sweep();
    expect([stranger, sender].map(({ destroyed }) => destroyed)).toEqual([true, false]);
    expect(ends).toEqual(['idle']);
    expect(lines).toEqual([]);
  });

  test('that is exempt counts as one that did', () => {
    const { connections, connect, ask, wait } = create({}, { isExempt: isProxy });
    const proxy = connect();
    ask(proxy);
    wait(60_000);
    connections.sweep();

    expect(proxy.destroyed).toBe(false);
  });
});

test('a connection that does not take its answer is ended after 30 s, one that has none yet is not', () => {
  const { connections, connect, wait, ends } = create();
  const [deaf, patient] = [connect(), connect()];
  const answers = [answerOn(deaf), answerOn(patient)];
  for (const { response } of answers) connections.begin(response);
  answers[0]?.write();
  for (let seconds = 0; seconds < 31; seconds++) {
    connections.sweep();
    expect(deaf.destroyed).toBe(false);
    wait(1_000);
  }
  connections.sweep();

  expect([deaf, patient].map(({ destroyed }) => destroyed)).toEqual([true, false]);
  expect(ends).toEqual(['untaken']);
});

test('one that takes its answer slowly stays as long as it takes some of it', () => {
  const { connections, connect, wait, ends } = create();
  const slow = connect();
  const { response, write } = answerOn(slow);
  connections.begin(response);
  write();
  const left = (bytes: number) => Object.assign(slow, { writableLength: bytes });
  for (let kilobytes = 100; kilobytes >= 98; kilobytes--) {
    left(kilobytes * 1_024);
    for (let seconds = 0; seconds < 30; seconds++) {
      connections.sweep();
      wait(1_000);
    }
  }
  expect(slow.destroyed).toBe(false);
  wait(1_000);
  connections.sweep();

  expect(ends).toEqual(['untaken']);
});

test('an answer is made the last of its connection once, however often that is said', () => {
  const socket = new Socket();
  const response = new ServerResponse(new IncomingMessage(socket));
  response.writeHead(200);
  for (let count = 0; count < 20; count++) closeAfter(response, socket);

  expect(response.listenerCount('finish')).toBe(1);
  response.emit('finish');
  expect(socket.destroyed).toBe(true);
});

test('refused connections are one log line with counts, however many there are', () => {
  const { connections, connect, lines } = create({ connections: 1 });
  for (let count = 0; count < 1_000; count++) connect();
  expect(lines).toEqual([]);

  connections.sweep();
  connections.sweep();

  expect(lines).toMatchObject([{ connections: 'test', open: 1, ended: { room: 999 } }]);
});
