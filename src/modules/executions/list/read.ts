/** Records of executions for answers: with their results and children, masked as the caller may see them. */
import { MAX_SOURCE_BYTES, seesSecrets, type ApiRequest, type Projection } from '../../../http/index.ts'
import { executionResource } from '../../../core/permissions.ts'
import type { Records } from '../record.ts'
import type { ExecutionStore } from '../store.ts'
import type { Execution, ExecutionRecord } from '../types.ts'
import { executionAttributes } from './attributes.ts'
import type { ExecutionListStore } from './store.ts'

/** Executions of a list that are read at once. */
const RECORDS_TOGETHER = 25
export interface RecordReader {
  /** The record of an execution without attributes that the caller does not want. */
  one(execution: Execution, request: ApiRequest, wanted?: Projection): Record<string, unknown>
  /** Records in the order of the ids, without executions that the caller may not view. */
  many(ids: string[], request: ApiRequest, wanted: Projection): Generator<Record<string, unknown>>
  /** The record of an execution that was created just now: without a result and children. */
  created(execution: Execution, request: ApiRequest): ExecutionRecord
}

export function createRecordReader(deps: {
  store: Pick<ExecutionStore, 'results' | 'findByIds' | 'batches'>
  list: Pick<ExecutionListStore, 'childrenOf'>
  records: Pick<Records, 'of'>
}): RecordReader {
  const { store, list, records } = deps

  /**
   * In the given order, each with its result and its children unless the caller leaves them out. Keeps no record: a slow
   * reader may take minutes for each.
   */
  function* makeRecords(
    executions: Execution[],
    request: ApiRequest,
    wanted: Projection,
  ): Generator<Record<string, unknown>> {
    const ids = executions.map(({ id }) => id)
    const children = needs(wanted, 'children') ? groupByParent(list.childrenOf(ids)) : noChildren
    const wantsResults = needs(wanted, 'result')
    const stored = wantsResults ? store.results(ids) : undefined
    function toRecord(execution: Execution): Record<string, unknown> {
      const { id } = execution
      const result: unknown = execution.result ?? stored?.get(id)
      stored?.delete(id)
      const record = records.of(
        { ...execution, result },
        { children: children.get(id) ?? [], unmasked: seesSecrets(request) },
      )
      return wanted.apply(record)
    }
    const left = executions.toReversed()
    executions.length = 0
    while (left.length > 0) yield* left.splice(-1).map(toRecord)
  }

  return {
    one(execution, request, wanted = everything) {
      const [record] = makeRecords([execution], request, wanted)
      return record ?? {}
    },
    // A few at a time: a list may hold everything there is.
    *many(ids, request, wanted) {
      for (const some of store.batches(ids, { count: RECORDS_TOGETHER, bytes: MAX_SOURCE_BYTES })) {
        const found = new Map(
          store
            .findByIds(some)
            .filter((execution) => request.rights.may('execution_view', executionResource(execution)))
            .map((execution) => [execution.id, execution]),
        )
        yield* makeRecords(
          some.flatMap((id) => found.get(id) ?? []),
          request,
          wanted,
        )
      }
    },
    created: (execution, request) => records.of(execution, { children: [], unmasked: seesSecrets(request) }),
  }
}

const everything: Projection = { needed: undefined, apply: (record) => record }

function needs(wanted: Projection, attribute: string): boolean {
  return wanted.needed === undefined || wanted.needed.has(attribute)
}

export function withoutResult(wanted: Projection): Projection {
  const needed = new Set(wanted.needed ?? executionAttributes)
  needed.delete('result')
  return { needed, apply: (record) => wanted.apply(record) }
}

/**
 * Ids of descendants, depth first, siblings oldest first.
 *
 * @param depth levels below the root
 * @param limit most ids; those nearest to the root come first
 */
export function descendantsOf(
  list: Pick<ExecutionListStore, 'childrenOf'>,
  root: string,
  depth: number,
  limit: number,
): string[] {
  const childrenOf = new Map<string, string[]>()
  let level = [root]
  let left = limit
  for (let n = 0; n < depth && level.length > 0 && left > 0; n++) {
    const children = list.childrenOf(level, left)
    for (const [parent, ids] of groupByParent(children)) childrenOf.set(parent, ids)
    left -= children.length
    level = children.map(({ id }) => id)
  }
  const ordered: string[] = []
  const pending = [root]
  for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
    if (id !== root) ordered.push(id)
    for (const child of (childrenOf.get(id) ?? []).toReversed()) pending.push(child)
  }
  return ordered
}

const noChildren: ReadonlyMap<string, string[]> = new Map()

/** Ids by parent, in the given order. */
function groupByParent(children: readonly { id: string; parent: string }[]): Map<string, string[]> {
  const groups = new Map<string, string[]>()
  for (const { id, parent } of children) {
    const siblings = groups.get(parent)
    if (siblings === undefined) groups.set(parent, [id])
    else siblings.push(id)
  }
  return groups
}
