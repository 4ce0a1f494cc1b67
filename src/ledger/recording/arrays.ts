// Encodes columns of a batch as Postgres arrays in binary form, which the driver sends unchanged. The driver's own text form
// escapes each value in JavaScript, and the server parses it again: that cost more than the insert into a row's indexes.
// The layout is that of `array_send` in Postgres' src/backend/utils/adt/arrayfuncs.c.

/** The types' object ids, which are fixed in Postgres' pg_type.dat. */
const OID = { bytea: 17, int8: 20, int2: 21, int4: 23, text: 25, uuid: 2950 } as const;

/** Five numbers: dimensions, the flag for nulls, the element type, the size and the lower bound of the one dimension. */
const HEAD_BYTES = 5 * 4;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;
const UUID_BYTES = 16;

type Format<T> = {
  readonly oid: number;
  readonly bytes: (value: T) => number;
  readonly write: (to: Buffer, value: T, at: number) => void;
};

const text: Format<string> = {
  oid: OID.text,
  bytes: (value) => Buffer.byteLength(value),
  write: (to, value, at) => to.write(value, at),
};
const bytea: Format<Buffer> = {
  oid: OID.bytea,
  bytes: (value) => value.length,
  write: (to, value, at) => to.set(value, at),
};
const int2: Format<number> = {
  oid: OID.int2,
  bytes: () => 2,
  write: (to, value, at) => to.writeInt16BE(value, at),
};
const int4: Format<number> = {
  oid: OID.int4,
  bytes: () => 4,
  write: (to, value, at) => to.writeInt32BE(value, at),
};
/** Decimal digits: not all of them fit into a number of JavaScript. */
const int8: Format<string> = {
  oid: OID.int8,
  bytes: () => 8,
  write: (to, value, at) => to.writeBigInt64BE(BigInt(value), at),
};
const uuid: Format<string> = {
  oid: OID.uuid,
  bytes: () => UUID_BYTES,
  write: (to, value, at) => to.write(value.replaceAll('-', ''), at, 'hex'),
};

/** A lone surrogate becomes U+FFFD. The server refuses a NUL, as in the text form. */
export const textArray = (values: readonly (string | null)[]) => encode(text, values);
export const byteaArray = (values: readonly (Buffer | null)[]) => encode(bytea, values);
/** @throws RangeError for a number that does not fit into the type */
export const int2Array = (values: readonly (number | null)[]) => encode(int2, values);
/** @throws RangeError for a number that does not fit into the type */
export const int4Array = (values: readonly (number | null)[]) => encode(int4, values);
/** @throws RangeError or SyntaxError for text that is no such number */
export const int8Array = (values: readonly (string | null)[]) => encode(int8, values);
/** UUIDs in their usual form of 36 characters. */
export const uuidArray = (values: readonly (string | null)[]) => encode(uuid, values);

function encode<T>({ oid, bytes, write }: Format<T>, values: readonly (T | null)[]): Buffer {
  let size = HEAD_BYTES;
  let hasNull = false;
  for (const value of values) {
    size += LENGTH_BYTES;
    if (value === null) hasNull = true;
    else size += bytes(value);
  }
  const array = Buffer.allocUnsafe(size);
  array.writeInt32BE(1, 0);
  array.writeInt32BE(Number(hasNull), 4);
  array.writeInt32BE(oid, 8);
  array.writeInt32BE(values.length, 12);
  array.writeInt32BE(1, 16);
  let at = HEAD_BYTES;
  for (const value of values) {
    const length = value === null ? NULL_LENGTH : bytes(value);
    array.writeInt32BE(length, at);
    at += LENGTH_BYTES;
    if (value === null) continue;
    write(array, value, at);
    at += length;
  }
  return array;
}
