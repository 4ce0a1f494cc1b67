// A proxy in front of the service, as a careless operator sets one up: it takes a whole request, changes it, and passes it on.

import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'undici';
import type { Certificate } from './certificate.ts';
import { type Receiver, type Respond, startReceiver } from './receiver.ts';

type Passed = { readonly headers: IncomingHttpHeaders; readonly body: Buffer };
type Reply = { readonly status: number; readonly text: string };

/** `change`: what reaches the service, or what the proxy answers itself. Without it nothing changes. */
export function startFront(
  target: string,
  options: { certificate?: Certificate; change?: (passed: Passed) => Passed | Reply | Promise<Passed> } = {},
): Promise<Receiver> {
  const { certificate, change = (passed) => passed } = options;
  async function pass(...[response, { method, path, headers, body }]: Parameters<Respond>): Promise<void> {
    const passed = await change({ headers, body });
    if ('status' in passed) return void response.writeHead(passed.status).end(passed.text);
    const {
      'content-length': _length,
      'transfer-encoding': _encoding,
      connection: _connection,
      ...kept
    } = passed.headers;
    const answer = await request(new URL(path, target), {
      method: method as 'POST',
      headers: kept,
      body: method === 'GET' ? null : passed.body,
      reset: true,
    });
    const { connection: _hop, ...own } = answer.headers;
    response.writeHead(answer.statusCode, own).end(Buffer.from(await answer.body.arrayBuffer()));
  }
  return startReceiver(
    // Its client may be gone.
    (response, ...rest) => void pass(response, ...rest).catch(() => response.destroy()),
    certificate === undefined ? {} : { certificate },
  );
}
