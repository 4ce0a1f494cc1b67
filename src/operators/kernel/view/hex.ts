// Bytes as hexadecimal text: where each line begins, its sixteen bytes, and those of them that are ASCII.

const BYTES_PER_LINE = 16;

export function hexOf(bytes: Buffer): string {
  const lines: string[] = [];
  for (let start = 0; start < bytes.length; start += BYTES_PER_LINE) {
    const line = bytes.subarray(start, start + BYTES_PER_LINE);
    const digits = line
      .toString('hex')
      .replaceAll(/../g, '$& ')
      .padEnd(3 * BYTES_PER_LINE);
    const text = line.toString('latin1').replaceAll(/[^\x20-\x7e]/g, '.');
    lines.push(`${start.toString(16).padStart(6, '0')}  ${digits} ${text}`);
  }
  return lines.join('\n');
}
