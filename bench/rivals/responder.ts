// The smallest possible server: reads whole requests from a bare socket and answers 200. The generator's rate against it is the
// generator's own ceiling.

import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { connectToBenchmark } from '../control.ts';

const ANSWER = Buffer.from(
  'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 22\r\n\r\n{"outcome":"accepted"}',
);

const { tell } = await connectToBenchmark();
const server = createServer({ noDelay: true }, (socket) => {
  let missing = 0;
  let head = '';
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    // The generator writes a request at once and waits for its answer, so a chunk begins with a head or continues a body.
    if (missing === 0) {
      head += chunk.toString('latin1');
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      missing = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0) - (head.length - end - 4);
      head = '';
    } else missing -= chunk.length;
    if (missing <= 0) {
      missing = 0;
      socket.write(ANSWER);
    }
  });
});
server.listen(0, '127.0.0.1', () => tell('listening', (server.address() as AddressInfo).port));
