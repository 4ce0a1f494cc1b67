import { describe, expect, test } from 'vitest';
import { mayReach } from '../../../src/sandbox/addresses/ranges.ts';
import { URL_MAX_LENGTH, urlFault } from '../../../src/sandbox/addresses/rule.ts';

const fault = (url: string) => urlFault(url, { allowLocal: false });
const ownFault = (url: string) =>
  urlFault(url, { allowLocal: false, localOrigins: ['http://127.0.0.1:8091'] });
const localFault = (url: string) => urlFault(url, { allowLocal: true });

describe('a URL that may be used', () => {
  test.each([
    'https://example.com',
    'https://example.com/clip.mp4?token=a%20b#part',
    'HTTPS://EXAMPLE.COM/',
    'https://example.com:443/',
    'https://example.com:8443/',
    'https://example.com./',
    'https://bücher.example/',
    'https://localhost.example.com/',
    'https://8.8.8.8/',
    'https://[2606:4700:4700::1111]/',
  ])('%s', (url) => {
    expect(fault(url)).toBeUndefined();
    expect(localFault(url)).toBeUndefined();
  });

  test('plain http is for those who allowed what is local', () => {
    expect(fault('http://example.com/')).toBe('must be an absolute https:// URL');
    expect(localFault('http://example.com/')).toBeUndefined();
    expect(localFault('http://127.0.0.1:9000/clip.mp4')).toBeUndefined();
  });

  test('an origin of this machine that the sandbox itself named, and no other', () => {
    expect(ownFault('http://127.0.0.1:8091/clip.mp4')).toBeUndefined();
    for (const other of ['http://127.0.0.1:8092/', 'http://localhost:8091/', 'http://127.0.0.2:8091/']) {
      expect(ownFault(other)).toBe('must be an absolute https:// URL');
    }
    expect(ownFault('https://127.0.0.1:8091/')).toBe('must not name a private, local or reserved host');
    expect(ownFault('http://me:secret@127.0.0.1:8091/')).toBe('must not hold a user name or password');
  });

  test('2,048 characters are allowed and not one more', () => {
    const url = `https://example.com/${'x'.repeat(URL_MAX_LENGTH)}`;

    expect(fault(url.slice(0, URL_MAX_LENGTH))).toBeUndefined();
    expect(fault(url.slice(0, URL_MAX_LENGTH + 1))).toBe('must be no longer than 2048 characters');
  });
});

describe('a URL of another kind is refused', () => {
  test.each([
    'file:///etc/passwd',
    'FILE:///etc/passwd',
    'ftp://example.com/',
    'gopher://example.com/',
    'data:video/mp4;base64,AAAA',
    'javascript:alert(1)',
    'blob:https://example.com/1',
    'https:example.com',
    'https:/example.com',
    '//example.com/',
    '/clip.mp4',
    'clip.mp4',
    'https://',
    'https://example.com:70000/',
    'https://[::1/',
    'https://1.2.3.4.5/',
    'https://[fe80::1%25eth0]/',
    '',
  ])('"%s"', (url) => {
    expect(fault(url)).toBe('must be an absolute https:// URL');
    expect(localFault(url)).toBe('must be an absolute https:// or http:// URL');
  });

  test.each([
    ' https://example.com/',
    'https://example.com/ ',
    'https://exam\tple.com/',
    'https://example.com/\r\nX-Odd: 1',
    'https://example.com/\0',
    'https:\\\\example.com\\',
    'https://example.com\\@127.0.0.1/',
  ])('"%s": somebody else could read it differently', (url) => {
    expect(localFault(url)).toBe('must not hold spaces, backslashes or control characters');
  });

  test.each([
    'https://user@example.com/',
    'https://user:pw@example.com/',
    'https://127.0.0.1:80@example.com/',
  ])('%s: it holds credentials', (url) => {
    expect(localFault(url)).toBe('must not hold a user name or password');
  });

  test.each([0, 22, 25, 1_023])('port %i is not for the web', (port) => {
    expect(localFault(`https://example.com:${port}/`)).toBe('must use the usual port, or one from 1024 up');
  });
});

const HOST_REFUSED = 'must not name a private, local or reserved host';

describe('a host of this machine is refused, but with what is local allowed', () => {
  test.each([
    'localhost',
    'LocalHost',
    'localhost.',
    'localhost..',
    'any.localhost',
    'any.other.localhost.',
    '127.0.0.1',
    '127.255.255.254',
    '127.0.0.1.',
    '127.1',
    '2130706433',
    '0177.0.0.1',
    '0x7f.1',
    '0x7f000001',
    '017700000001',
    '%31%32%37.0.0.1',
    '１２７.０.０.１',
    '127。0。0。1',
    '[::1]',
    '[0:0:0:0:0:0:0:1]',
    '[::0001]',
  ])('%s', (host) => {
    expect(fault(`https://${host}/`)).toBe(HOST_REFUSED);
    expect(localFault(`https://${host}/`)).toBeUndefined();
  });
});

describe('a host that is private, reserved or a disguise is refused, whatever is allowed', () => {
  test.each([
    '10.0.0.1',
    '167772161', // 10.0.0.1
    '012.0.0.1',
    '0xa.0.0.1',
    '10.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '169.254.169.254',
    '0xa9fea9fe', // 169.254.169.254
    '100.64.0.1',
    '0.0.0.0',
    '0',
    '192.0.0.1',
    '192.0.2.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '[::]',
    '[::127.0.0.1]',
    '[::10.0.0.1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::ffff:10.0.0.1]',
    '[::ffff:8.8.8.8]',
    '[::ffff:0:10.0.0.1]',
    '[64:ff9b::127.0.0.1]',
    '[64:ff9b::a00:1]',
    '[64:ff9b:1::a00:1]',
    '[2002:7f00:1::1]',
    '[2002:a00:1::1]',
    '[2001:0:a00:1::1]',
    '[2001:db8::1]',
    '[fe80::1]',
    '[fec0::1]',
    '[fc00::1]',
    '[fd12:3456::1]',
    '[ff02::1]',
    '[100::1]',
    '[4000::1]',
  ])('%s', (host) => {
    expect(fault(`https://${host}/`)).toBe(HOST_REFUSED);
    expect(localFault(`https://${host}/`)).toBe(HOST_REFUSED);
  });
});

test.each(['', 'example.com', '1.2.3', '1.2.3.4/8', '::1::', '12345::'])(
  '"%s" is no IP address, and what is none may not be reached',
  (text) => {
    expect(mayReach(text, { allowLocal: true })).toBe(false);
  },
);

test('a scope changes nothing about an address', () => {
  expect(mayReach('fe80::1%lo', { allowLocal: true })).toBe(false);
});
