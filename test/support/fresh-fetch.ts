// Requests on connections of their own. One that is kept may be the very one that a server ends to make room, just when the
// next request goes out on it.

import { Agent, fetch } from 'undici';

const withoutKeeping = new Agent({ pipelining: 0 });

export function fetchAfresh(url: string): ReturnType<typeof fetch> {
  return fetch(url, { dispatcher: withoutKeeping });
}
