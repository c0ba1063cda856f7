/** Results of tasks, as expressions read them. */
import type { Draft } from './draft.ts'
import type { InstanceRow, ItemRow } from './state.ts'
import { isCompleted } from './status.ts'
import type { Outside } from './types.ts'

interface Known {
  readonly draft: Draft
  readonly outside: Outside
  /** The result that the event brought. */
  readonly news: { readonly instance: number; readonly item: number | undefined; readonly result: unknown } | undefined
}

function actionResult({ news, outside }: Known, instance: number, item: number | undefined): unknown {
  if (news !== undefined && news.instance === instance && news.item === item) return news.result
  return outside.resultOf(instance, item) ?? null
}

const isEnded = ({ status }: ItemRow): boolean => status !== 'running' && status !== 'pending' && status !== 'paused'

/** `result()`: of a task with items, the list of their results, null for those that have none. */
export function resultOf(known: Known, instance: InstanceRow): unknown {
  if (instance.items === null) return actionResult(known, instance.id, undefined)
  return Array.from({ length: instance.items.count }, (_, index) => {
    const item = known.draft.item(instance.id, index)
    return item !== undefined && isEnded(item) ? actionResult(known, item.source, index) : null
  })
}

/** The result in `task()`: of a task with items, the status and the result of each. */
export function shownResultOf(known: Known, instance: InstanceRow): unknown {
  if (instance.items === null) return isCompleted(instance.status) ? resultOf(known, instance) : null
  if (instance.items.count === 0) return null
  return {
    items: Array.from({ length: instance.items.count }, (_, index) => {
      const item = known.draft.item(instance.id, index)
      return item !== undefined && isEnded(item)
        ? { status: item.status, result: actionResult(known, item.source, index) }
        : null
    }),
  }
}
