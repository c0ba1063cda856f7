/**
 * The variables that a task sees.
 *
 * A context is a difference to the contexts before it. Objects in variables merge, at any depth; everything else replaces.
 * Merged variables are made when somebody asks for them, share what they have in common, and are kept while they are used.
 */
import { entriesOf, keysOf, mapObject, setOwn } from '../../../lib/json/index.ts'
import { Lru } from '../../../lib/cache/index.ts'
import { isObject } from '../../../lib/schema/index.ts'
import type { Draft } from './draft.ts'
import type { ContextRow } from './state.ts'

export type Variables = Readonly<Record<string, unknown>>

/** The context with the workflow's input and `vars`. */
const BASE_CONTEXT = 0

/**
 * Several contexts merged into one. Merged with what came before them, it gives what they give one after the other: an
 * object that took the place of another value among them replaces then, too.
 */
interface Merged {
  readonly variables: Variables
  readonly replacing: Replacing | undefined
}

/** Names of variables and keys whose objects replace: `true`, or what is inside of them. */
type Replacing = ReadonlyMap<string, true | Replacing>

const nothing: Merged = { variables: {}, replacing: undefined }

const MAX_CACHED_CONTEXTS = 4_096
const MAX_CACHED_VARIABLES = 400_000

/** Merged contexts of a run. Rows never change, so an entry holds for as long as its row. */
export class ContextCache {
  /** Without the base. */
  readonly merged = new Lru<ContextRow, Merged>(MAX_CACHED_CONTEXTS, MAX_CACHED_VARIABLES)
  /** In characters of JSON: see `sizes.ts`. */
  readonly sizes = new Lru<ContextRow, number>(MAX_CACHED_CONTEXTS)
  readonly complete = new Lru<ContextRow, Variables>(MAX_CACHED_CONTEXTS, MAX_CACHED_VARIABLES)
}

const weightOf = (variables: Variables): number => keysOf(variables).length

/** A context behind others; one of them, if there is nothing to add. */
export function addContext(draft: Draft, parents: readonly number[], values: Variables): number {
  const distinct = parents.filter((parent, index) => parent !== parents[index - 1])
  const [first = BASE_CONTEXT] = distinct
  if (distinct.length <= 1 && keysOf(values).length === 0) return first
  return draft.addContext(distinct, values)
}

/** All variables of a context. */
export function variablesOf(draft: Draft, cache: ContextCache, id: number): Variables {
  const row = draft.context(id)
  const known = cache.complete.get(row)
  if (known !== undefined) return known
  const { variables } = merge([baseOf(draft), mergedOf(draft, cache, row)])
  cache.complete.set(row, variables, weightOf(variables))
  return variables
}

/** The variables of several contexts merged one after the other, and with others. */
export function mergedVariables(
  draft: Draft,
  cache: ContextCache,
  ids: readonly number[],
  values: Variables = {},
): Variables {
  const parts = ids.map((id) => mergedOf(draft, cache, draft.context(id)))
  return merge([baseOf(draft), ...parts, { variables: values, replacing: undefined }]).variables
}

function baseOf(draft: Draft): Merged {
  const base = draft.findContext(BASE_CONTEXT)
  return { variables: base?.values ?? {}, replacing: undefined }
}

/** Walks back to contexts that are known, then forward; without recursion, as a run may have 100,000 one after the other. */
function mergedOf(draft: Draft, cache: ContextCache, wanted: ContextRow): Merged {
  const known = cache.merged.get(wanted)
  if (known !== undefined) return known
  const found = new Map<number, Merged>([[BASE_CONTEXT, nothing]])
  const open = [wanted]
  for (let row = open.at(-1); row !== undefined; row = open.at(-1)) {
    const cached = found.get(row.id) ?? cache.merged.get(row)
    const missing = cached === undefined ? row.parents.filter((parent) => !found.has(parent)) : []
    if (missing.length > 0) {
      for (const parent of missing) open.push(draft.context(parent))
      continue
    }
    const parents = row.parents.map((parent) => found.get(parent) ?? nothing)
    const merged = cached ?? merge([...parents, { variables: row.values, replacing: undefined }])
    found.set(row.id, merged)
    cache.merged.set(row, merged, weightOf(merged.variables))
    open.pop()
  }
  return found.get(wanted.id) ?? nothing
}

/** One after the other. What only one of them has is shared with it. */
function merge(parts: readonly Merged[]): Merged {
  const given = parts.filter(({ variables }) => keysOf(variables).length > 0)
  const [first = nothing, ...others] = given
  if (others.length === 0) return first
  const merging = new Merging(first)
  for (const other of others) merging.add(other)
  return merging.result
}

type Growing = Record<string, unknown>
type GrowingReplacing = Map<string, true | GrowingReplacing>

class Merging {
  /** Objects that this merge has made, and may change. */
  readonly #own = new WeakSet<object>()
  readonly #variables: Growing
  readonly #replacing: GrowingReplacing

  constructor(first: Merged) {
    this.#variables = this.#copy(first.variables)
    this.#replacing = copyReplacing(first.replacing)
  }

  add({ variables, replacing }: Merged): void {
    this.#merge(this.#variables, this.#replacing, variables, replacing)
  }

  get result(): Merged {
    return { variables: this.#variables, replacing: this.#replacing.size === 0 ? undefined : this.#replacing }
  }

  #merge(target: Growing, marks: GrowingReplacing, source: Variables, sourceMarks: Replacing | undefined): void {
    for (const [name, value] of entriesOf(source)) {
      const mark = sourceMarks?.get(name)
      const earlier = Object.hasOwn(target, name) ? target[name] : undefined
      if (mark !== true && isObject(earlier) && isObject(value)) {
        const inner = this.#own.has(earlier) ? earlier : this.#copy(earlier)
        const known = marks.get(name)
        const innerMarks: GrowingReplacing = known === undefined || known === true ? new Map() : known
        this.#merge(inner, innerMarks, value, mark)
        setOwn(target, name, inner)
        if (known !== true && innerMarks.size > 0) marks.set(name, innerMarks)
      } else {
        setOwn(target, name, value)
        if (isObject(value) && (mark === true || earlier !== undefined)) marks.set(name, true)
        else if (mark === undefined) marks.delete(name)
        else marks.set(name, mark === true ? true : copyReplacing(mark))
      }
    }
  }

  #copy(object: Variables): Growing {
    const copy = mapObject(object, (value) => value)
    this.#own.add(copy)
    return copy
  }
}

function copyReplacing(replacing: Replacing | undefined): GrowingReplacing {
  return new Map(
    Array.from(replacing ?? [], ([name, mark]) => [name, mark === true ? true : copyReplacing(mark)] as const),
  )
}
