// Where a sign-in leads afterwards. The address comes with the request, so it may be anybody's: only one of the site itself is
// followed.

const ADDRESS_MAX_LENGTH = 2_000;

/** @param site where it is mounted: `/console`. @returns the address as a browser reads it; undefined if it is not of the site */
export function addressWithin(site: string, address: string): string | undefined {
  // A second slash, in either direction, would name another host.
  if (address.length > ADDRESS_MAX_LENGTH || !/^\/(?![/\\])/.test(address)) return undefined;
  const url = URL.parse(address, 'http://localhost');
  if (url === null) return undefined;
  const { pathname, search } = url;
  const isOwn = pathname === site || pathname.startsWith(`${site}/`);
  return isOwn && !pathname.includes('//') ? `${pathname}${search}` : undefined;
}
