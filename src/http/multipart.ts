/** The fields of multipart forms that may hold files (contract 00, 0.3; 06, 6.3). */
import { setImmediate } from 'node:timers/promises'
import { bodyMalformed, type AppError } from '../core/errors.ts'
import { isJsonType } from './json.ts'

/** Parsed in one go; other requests run between two slices. */
const SLICE_BYTES = 64 * 1024
const INCOMPLETE = 'it is not a complete form of the boundary that its Content-Type names'
/** Of the headers of one part. */
const MAX_HEADER_BYTES = 8 * 1024
const MAX_HEADERS = 20

/**
 * The fields in their order. Files and parts without a name are left out, except files of JSON: some senders give the
 * event itself a file name.
 *
 * @param contentType as sent, with its boundary
 * @throws BODY_MALFORMED
 */
export async function multipartFields(
  contentType: string,
  bytes: Buffer,
  maxParts: number,
): Promise<[name: string, value: string][]> {
  // Few clients send multipart forms, and the server starts sooner without the parser.
  const { default: busboy } = await import('@fastify/busboy')
  const fields: [string, string][] = []
  let failure: AppError | undefined
  let isFinished = false
  const fail = (why: string): void => {
    failure ??= bodyMalformed(why)
  }
  let parser: InstanceType<typeof busboy.Busboy>
  try {
    parser = new busboy.Busboy({
      headers: { 'content-type': contentType },
      limits: {
        parts: maxParts,
        fieldSize: bytes.length,
        headerSize: MAX_HEADER_BYTES,
        headerPairs: MAX_HEADERS,
      },
    })
  } catch (error) {
    if (error instanceof TypeError) throw error
    throw bodyMalformed('its Content-Type has no usable boundary')
  }
  // The parser decodes invalid UTF-8 to this character; a body that holds the character itself proves nothing.
  const maySayUnknown = bytes.includes('\ufffd')
  parser.on('field', (name: string | undefined, value) => {
    if (name === undefined) return
    if (!maySayUnknown && (name.includes('\ufffd') || value.includes('\ufffd'))) fail('it is not valid UTF-8')
    fields.push([name, value])
  })
  parser.on('file', (name: string | undefined, stream, _file, _encoding, type: string) => {
    stream.on('error', () => fail(INCOMPLETE))
    if (name === undefined || !isJsonType(type.toLowerCase())) {
      stream.resume()
      return
    }
    // Its text is complete only after later fields.
    const field: [string, string] = [name, '']
    fields.push(field)
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      if (!maySayUnknown && text.includes('\ufffd')) fail('it is not valid UTF-8')
      field[1] = text
    })
  })
  parser.on('partsLimit', () => fail(`it has more than ${maxParts} fields`))
  parser.on('error', () => fail(INCOMPLETE))
  parser.on('finish', () => {
    isFinished = true
  })
  for (let at = 0; at < bytes.length && failure === undefined; at += SLICE_BYTES) {
    parser.write(bytes.subarray(at, at + SLICE_BYTES))
    await setImmediate()
  }
  if (failure === undefined) {
    parser.end()
    // The parser emits what it has read within a few turns of the event loop, or never.
    for (let turns = 0; turns < MAX_TURNS && !isFinished && failure === undefined; turns += 1) await setImmediate()
    if (!isFinished) fail(INCOMPLETE)
  }
  if (failure === undefined) return fields
  parser.destroy()
  throw failure
}

const MAX_TURNS = 100
