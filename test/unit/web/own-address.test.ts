import { expect, test } from 'vitest';
import { addressWithin } from '../../../src/web/own-address.ts';

test.for([
  ['/console', '/console'],
  ['/console/jobs?state=stuck&cursor=a%2Bb', '/console/jobs?state=stuck&cursor=a%2Bb'],
  ['/console?range=7d', '/console?range=7d'],
  ['/console/jobs#top', '/console/jobs'],
])('%s is an address of the site', ([address, read]) => {
  expect(addressWithin('/console', address ?? '')).toBe(read);
});

test.for([
  '',
  'console',
  'https://elsewhere.example/console',
  '//elsewhere.example/console',
  '/\\elsewhere.example/console',
  '/\t/elsewhere.example',
  '/\n/[',
  '/consoles',
  '/console/../metrics',
  '/console/..//elsewhere.example',
  '/console//elsewhere',
  '/console/%2e%2e/metrics',
  'javascript:alert(1)',
  `/console/${'x'.repeat(2_000)}`,
])('%j leads nowhere', (address) => {
  expect(addressWithin('/console', address)).toBeUndefined();
});
