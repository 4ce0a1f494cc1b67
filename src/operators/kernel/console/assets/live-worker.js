// One stream for all tabs of a browser: with one each, a seventh tab would hang, since browsers open six connections to a host.

import { createStream } from './live-stream.js';

const tabs = new Set();
const tell = (told) => {
  for (const tab of tabs) tab.postMessage(told);
};
const stream = createStream(tell);

globalThis.addEventListener('connect', ({ ports: [tab] }) => {
  tab.addEventListener('message', ({ data }) => {
    if (data === 'join') {
      tabs.add(tab);
      tab.postMessage({ kind: 'state', state: stream.state() });
      stream.open();
    } else {
      tabs.delete(tab);
      if (tabs.size === 0) stream.close();
    }
  });
  tab.start();
});
