// Text as one word of a POSIX shell.

/** In single quotes, unless all of its characters mean nothing to a shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
