/** Files of packs for viewing (contract 02, 2.8): text and images, and no scripts that a browser would run. */
import { basename } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { readContainedBytes } from '../../lib/files/index.ts'
import { packFileNotFound, packFileTooLarge } from '../../core/errors.ts'
import { Reply } from '../../http/index.ts'
import { codeOf } from '../../lib/process/index.ts'
import type { PackFileText } from './types.ts'
import { createFilter, isGenerated, scanPack } from './files.ts'

export const MAX_SHOWN_BYTES = 500_000
/** Of all files in one answer. */
const MAX_TOTAL_BYTES = 20_000_000

/** By file extension. Other text is plain text; other files are downloads. */
const mediaTypes: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  ico: 'image/x-icon',
  json: 'application/json; charset=UTF-8',
  yaml: 'application/x-yaml; charset=UTF-8',
  yml: 'application/x-yaml; charset=UTF-8',
  py: 'text/x-python; charset=UTF-8',
}

/** HTML and SVG files of a pack must not run scripts with the permissions of the viewer. */
const harmless = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
}

/** All text files that are not too large. @throws PACK_FILE_NOT_FOUND if the folder cannot be read */
export async function* packFileTexts(folder: string): AsyncGenerator<PackFileText> {
  const { files } = await scanPack(folder).catch((error: unknown) => {
    throw codeOf(error) === undefined ? error : packFileNotFound(basename(folder))
  })
  let room = MAX_TOTAL_BYTES
  for (const path of files) {
    const file = await readContainedBytes(folder, path, Math.min(MAX_SHOWN_BYTES, room))
    if ('problem' in file) continue
    const content = textOf(file.bytes)
    if (content === undefined) continue
    room -= file.bytes.length
    yield { file_path: path, content }
    await setImmediate()
  }
}

/** @throws PACK_FILE_NOT_FOUND, PACK_FILE_TOO_LARGE */
export async function packFile(
  folder: string,
  path: string,
  headers: { 'if-none-match'?: string | undefined; 'if-modified-since'?: string | undefined },
): Promise<Reply> {
  const segments = path.split('/')
  if (segments.some(isGenerated) || segments.includes('')) throw packFileNotFound(path)
  const isHidden = await createFilter(folder)
  if (isHidden(path, false)) throw packFileNotFound(path)
  const file = await readContainedBytes(folder, path, MAX_SHOWN_BYTES)
  if ('problem' in file) {
    throw file.problem === 'too large' ? packFileTooLarge(path, MAX_SHOWN_BYTES) : packFileNotFound(path)
  }
  const entityTag = `"${Math.round(file.mtimeMs * 1000).toString(36)}-${file.bytes.length.toString(36)}"`
  const about = {
    ...harmless,
    ETag: entityTag,
    'Last-Modified': new Date(file.mtimeMs).toUTCString(),
    'Cache-Control': 'private, no-cache',
  }
  if (isUnchanged(headers, entityTag, file.mtimeMs)) return new Reply(undefined, { status: 304, headers: about })
  const [, extension = ''] = /\.(\w+)$/.exec(path) ?? []
  const known = extension.toLowerCase()
  const isText = textOf(file.bytes) !== undefined
  const mediaType = Object.hasOwn(mediaTypes, known)
    ? mediaTypes[known]
    : isText
      ? 'text/plain; charset=UTF-8'
      : undefined
  return new Reply(file.bytes, {
    headers: {
      ...about,
      'Content-Type': mediaType ?? 'application/octet-stream',
      ...(mediaType === undefined ? { 'Content-Disposition': 'attachment' } : {}),
    },
  })
}

function isUnchanged(
  { 'if-none-match': tags, 'if-modified-since': since }: Parameters<typeof packFile>[2],
  entityTag: string,
  mtimeMs: number,
): boolean {
  // Where both are given, the tag counts.
  if (tags !== undefined) {
    return tags.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === entityTag)
  }
  const time = since === undefined ? Number.NaN : Date.parse(since)
  return !Number.isNaN(time) && Math.floor(mtimeMs / 1000) * 1000 <= time
}

/** Undefined for binary content. */
function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
