// Which names a file may have. A plain name cannot be a path, a hidden file, or an option of a program.

const PLAIN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

export function isPlainName(name: string): boolean {
  return PLAIN.test(name);
}
