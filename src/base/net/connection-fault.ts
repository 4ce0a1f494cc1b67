// Why an HTTP server could not be asked, in a few words that name neither its address nor its host.

/** By the code alone: Node's messages name the host. */
export function connectionFault(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  const known = typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code) ? code : undefined;
  if (known === undefined) return 'the connection failed';
  if (known === 'ENOTFOUND' || known === 'EAI_AGAIN') return `its name has no address (${known})`;
  if (known === 'ECONNREFUSED') return `nothing listens there (${known})`;
  if (known.startsWith('HPE_')) return `it does not speak HTTP (${known})`;
  if (/TLS|SSL|CERT|SIGNATURE|ISSUER|^EPROTO$/.test(known)) return `TLS failed (${known})`;
  return `the connection failed (${known})`;
}
