/** Lists of items, limited to those that the caller can view (contract 05, 5.11). */
import type { Page, SortField, Rights } from '../../http/index.ts'
import { now } from '../../core/time.ts'
import type { Head, KeyStore, NameFilter, Section } from './store.ts'
import { keyResource, type Scope } from '../../core/permissions.ts'

/** The part of a page from one section. */
export interface KeyList {
  section: Section
  /** In order, read lazily. */
  readonly batches: () => Iterable<Head[]>
}

const BATCH = 100

export interface ListOptions {
  store: KeyStore
  rights: Rights
  /** Scopes of the caller's credential. */
  scopes: readonly Scope[] | undefined
  /** In output order. */
  sections: readonly Section[]
  filter: NameFilter
  sort: readonly SortField<'name' | 'scope'>[]
  page: Page
}

export async function listKeys(options: ListOptions): Promise<{ total: number; lists: KeyList[] }> {
  const { store, sort, page } = options
  const descends = (name: string): boolean => sort.find((field) => field.name === name)?.descending === true
  const sections = descends('scope') ? options.sections.toReversed() : options.sections
  const at = now()
  const lists: KeyList[] = []
  let { offset } = page
  let left = page.limit ?? Infinity
  let total = 0
  for (const section of sections) {
    const filter = visibleWithin(section, options)
    if (filter === undefined) continue
    const count = await store.count(section, filter, at)
    total += count
    const length = Math.min(left, count - offset)
    if (length <= 0) {
      offset = Math.max(0, offset - count)
      continue
    }
    const read = { store, section, filter, descending: descends('name'), at }
    lists.push({ section, batches: await openBatches(read, offset, length) })
    left -= length
    offset = 0
  }
  return { total, lists }
}

/** The filter, limited to items that the caller can view; undefined: none. */
function visibleWithin(section: Section, { rights, scopes, filter }: ListOptions): NameFilter | undefined {
  // A resource without a name: permission to view it is permission to view every item of this owner.
  const all = section.user === '' ? undefined : { uid: 'key_value_pair', owner: section.user }
  if (rights.may('key_value_pair_view', all)) return filter
  const start = keyResource({ ...section, name: '' }).uid
  const uids = [...rights.named('key_value_pair_view'), ...(scopes ?? []).map((scope) => scope.resource_uid ?? '')]
  const names = uids
    .filter((uid) => uid.startsWith(start))
    .map((uid) => uid.slice(start.length))
    .filter((name) => rights.may('key_value_pair_view', keyResource({ ...section, name })))
  return names.length === 0 ? undefined : { ...filter, names }
}

interface Reading {
  store: KeyStore
  section: Section
  filter: NameFilter
  descending: boolean
  at: string
}

/** At most `length` items from `offset`. An offset or a long list of names is resolved before, other items lazily. */
async function openBatches(
  { store, section, filter, descending, at }: Reading,
  offset: number,
  length: number,
): Promise<() => Generator<Head[]>> {
  const page = { descending, after: undefined, offset }
  if (filter.names !== undefined) {
    const heads = await store.findHeads(section, filter, { ...page, limit: length }, at)
    return function* () {
      for (let start = 0; start < heads.length; start += BATCH) yield heads.slice(start, start + BATCH)
    }
  }
  const [before] =
    offset === 0 ? [] : await store.findHeads(section, filter, { ...page, offset: offset - 1, limit: 1 }, at)
  return function* () {
    let after = before?.name
    for (let left = length; left > 0;) {
      const heads = store.heads(section, filter, { descending, after, offset: 0, limit: Math.min(left, BATCH) }, at)
      if (heads.length === 0) return
      yield heads
      left -= heads.length
      after = heads.at(-1)?.name
    }
  }
}
