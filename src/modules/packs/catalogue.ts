/** The catalogue: packs that can be installed by name, from the indexes of `content.index_url` (contract 02, 2.8). */
import { fileURLToPath } from 'node:url'
import { HttpProblem, type HttpGet } from '../../runners/index.ts'
import { readBoundedFile } from '../../lib/files/index.ts'
import { JsonLimitError, JsonNumberError, readLargeJson, writeJson } from '../../lib/json/index.ts'
import { isObject } from '../../lib/schema/index.ts'
import type { CataloguePack, PackIndexStatus } from './types.ts'

/** Of one index, in bytes. */
const MAX_INDEX_BYTES = 8 * 1024 * 1024
const MAX_PACKS = 5_000
const MAX_VALUES = 500_000
const MAX_DEPTH = 40
const TIMEOUT_MS = 20_000
/** How long an index counts as read. */
const KEPT_MS = 300_000
/** The same after an error. */
const KEPT_FAILED_MS = 15_000

export interface CatalogueContent {
  /** In the order of `content.index_url`. */
  status: readonly PackIndexStatus[]
  /** By reference. Of packs in several indexes the first index has the one. */
  packs: ReadonlyMap<string, CataloguePack>
  /** References of those that come from an index in a file of this machine, which may name places on it. */
  localRefs: ReadonlySet<string>
}

export interface Catalogue {
  /** From memory unless an index is older than five minutes. Rejects never: `status` says what failed. */
  read(): Promise<CatalogueContent>
  /** Packs that have every word in some attribute; those whose name has them come first. */
  search(query: string): Promise<CataloguePack[]>
  find(ref: string): Promise<CataloguePack | undefined>
  /** Whether any index is configured. */
  readonly isConfigured: boolean
}

interface Index {
  status: PackIndexStatus
  packs: ReadonlyMap<string, CataloguePack>
}

/** Why an index has no packs. */
class IndexProblem extends Error {
  readonly kind: NonNullable<PackIndexStatus['error']>
  constructor(kind: NonNullable<PackIndexStatus['error']>, message: string) {
    super(message)
    this.kind = kind
  }
}

/**
 * @param urls `content.index_url`: http, https and file URLs
 * @param now milliseconds of a steady clock
 */
export function createCatalogue(
  urls: readonly string[],
  get: HttpGet,
  now: () => number = () => performance.now(),
): Catalogue {
  /** One for each URL, so that callers at the same time share a request. */
  const kept = new Map<string, { index: Promise<Index>; until: number }>()

  function indexAt(url: string): Promise<Index> {
    const known = kept.get(url)
    if (known !== undefined && known.until > now()) return known.index
    const entry = { index: readIndex(url, get), until: Infinity }
    kept.set(url, entry)
    void entry.index.then(({ status }) => {
      entry.until = now() + (status.error === null ? KEPT_MS : KEPT_FAILED_MS)
    })
    return entry.index
  }

  async function read(): Promise<CatalogueContent> {
    const indexes = await Promise.all(urls.map(indexAt))
    const packs = new Map<string, CataloguePack>()
    const localRefs = new Set<string>()
    for (const [i, index] of indexes.entries()) {
      const isLocal = new URL(urls[i] ?? '').protocol === 'file:'
      for (const [ref, pack] of index.packs) {
        if (packs.has(ref)) continue
        packs.set(ref, pack)
        if (isLocal) localRefs.add(ref)
      }
    }
    return { status: indexes.map(({ status }) => status), packs, localRefs }
  }

  return {
    isConfigured: urls.length > 0,
    read,
    find: async (ref) => (await read()).packs.get(ref),
    async search(query) {
      const words = query.toLowerCase().split(/\s+/).filter(Boolean)
      const { packs } = await read()
      const found = [...packs.values()].flatMap((pack) => {
        const rank = rankOf(pack, words)
        return rank === undefined ? [] : [{ pack, rank }]
      })
      return found.toSorted((a, b) => a.rank - b.rank || compare(a.pack.ref, b.pack.ref)).map(({ pack }) => pack)
    },
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b))

/** The text of a pack without capitals; made once, because it is searched for every query. */
const texts = new WeakMap<CataloguePack, string>()

/** Lower is better; undefined: it lacks a word. */
function rankOf(pack: CataloguePack, words: readonly string[]): number | undefined {
  let text = texts.get(pack)
  if (text === undefined) {
    text = writeJson(pack).toLowerCase()
    texts.set(pack, text)
  }
  if (!words.every((word) => text.includes(word))) return undefined
  const name = `${pack.ref} ${pack.name}`.toLowerCase()
  if (words.every((word) => name.includes(word))) return words.includes(pack.ref) ? 0 : 1
  return 2
}

async function readIndex(url: string, get: HttpGet): Promise<Index> {
  const shownUrl = withoutCredentials(url)
  try {
    const packs = await packsIn(await readText(new URL(url), get))
    return { status: { url: shownUrl, packs: packs.size, message: 'Success.', error: null }, packs }
  } catch (error) {
    const problem =
      error instanceof IndexProblem ? error : new IndexProblem('unresponsive', 'The index could not be read.')
    return { status: { url: shownUrl, packs: 0, message: problem.message, error: problem.kind }, packs: new Map() }
  }
}

/** @throws IndexProblem */
async function readText(url: URL, get: HttpGet): Promise<string> {
  const bytes = await (url.protocol === 'file:' ? readLocal(url) : fetchRemote(url, get))
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new IndexProblem('malformed', 'The index is not UTF-8.')
  }
}

async function readLocal(url: URL): Promise<Buffer> {
  const file = await readBoundedFile(fileURLToPath(url), MAX_INDEX_BYTES)
  if ('problem' in file) throw new IndexProblem('unresponsive', `The file ${file.problem}.`)
  return file.bytes
}

async function fetchRemote(url: URL, get: HttpGet): Promise<Buffer> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  try {
    const { statusCode, body } = await get(url, {
      maxBytes: MAX_INDEX_BYTES,
      signal,
      allowsHttp: true,
      followsRedirects: true,
    })
    if (statusCode !== 200) throw new IndexProblem('unresponsive', `The server of the index answers ${statusCode}.`)
    return body
  } catch (error) {
    if (error instanceof IndexProblem) throw error
    if (signal.aborted) throw new IndexProblem('unresponsive', `No answer within ${TIMEOUT_MS / 1000} seconds.`)
    throw new IndexProblem('unresponsive', error instanceof HttpProblem ? `${error.message}.` : 'The request failed.')
  }
}

/** @throws IndexProblem */
async function packsIn(text: string): Promise<Map<string, CataloguePack>> {
  const document = await parse(text)
  const given = isObject(document) ? document['packs'] : undefined
  if (!isObject(given)) {
    throw new IndexProblem('malformed', 'The index is no object with an object "packs" in it.')
  }
  const entries = Object.entries(given)
  if (entries.length === 0) throw new IndexProblem('empty', 'The index has no packs.')
  if (entries.length > MAX_PACKS) throw new IndexProblem('malformed', `The index has more than ${MAX_PACKS} packs.`)
  return new Map(
    entries.flatMap(([key, pack]): [string, CataloguePack][] => {
      if (!isObject(pack)) return []
      const { ref, name } = pack
      return [
        [
          key,
          {
            ...pack,
            ref: typeof ref === 'string' && ref !== '' ? ref : key,
            name: typeof name === 'string' && name !== '' ? name : key,
          },
        ],
      ]
    }),
  )
}

async function parse(text: string): Promise<unknown> {
  try {
    const limits = { maxDepth: MAX_DEPTH, maxValues: MAX_VALUES }
    return await readLargeJson(text, limits, () => new Promise((resolve) => void setImmediate(resolve)))
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof JsonNumberError) {
      throw new IndexProblem('malformed', 'The index is not JSON.')
    }
    if (error instanceof JsonLimitError) {
      throw new IndexProblem('malformed', `The index has more than ${MAX_VALUES} values or ${MAX_DEPTH} levels.`)
    }
    throw error
  }
}

function withoutCredentials(text: string): string {
  const url = new URL(text)
  url.username = ''
  url.password = ''
  return url.href
}
