/** Tasks with items: one action for each item of a list, a limited number of them at a time. */
import { objectOf } from '../../../lib/json/index.ts'
import type { Items } from '../definition/model.ts'
import type { InstanceRow, ItemCounts, ItemRow, ItemStatus } from './state.ts'
import { itemsTaskStatus, type ItemRemainder, type TaskStatus } from './status.ts'
import { ConductError, evaluateIn, sightOf, type Turn } from './turn.ts'

const listKey = ({ id, retries }: InstanceRow): string => `${id}/${retries}`

/**
 * Reads the list of a task's items: when the task starts, and again after a restart of the server.
 *
 * @throws ConductError when it is not a list, is too long, or has another length than before
 */
export function readList(turn: Turn, form: Items, instance: InstanceRow): readonly unknown[] {
  const list = evaluateIn(turn, form.list, sightOf(turn, instance))
  if (!Array.isArray(list)) throw new ConductError('TypeError', `The value of "${form.list}" is not type of list.`)
  if (list.length > turn.limits.maxItems)
    throw new ConductError('LimitError', `The list has ${list.length} items; a task may have ${turn.limits.maxItems}.`)
  if (instance.items !== null && instance.items.count !== list.length)
    throw new ConductError(
      'ValueError',
      `The value of "${form.list}" had ${instance.items.count} items and now has ${list.length}. Publish the list before the task, so that it stays the same.`,
    )
  turn.lists.set(listKey(instance), list)
  return list
}

/** The list of a task that has started. */
export function listOf(turn: Turn, form: Items, instance: InstanceRow): readonly unknown[] {
  return turn.lists.get(listKey(instance)) ?? readList(turn, form, instance)
}

/** The task has ended. */
export function forgetList(turn: Turn, instance: InstanceRow): void {
  turn.lists.delete(listKey(instance))
}

/** What `item()` gives: the item, or its parts by their names. */
export function itemOf(form: Items, item: unknown): unknown {
  const { names } = form
  if (names.length === 0) return item
  if (Array.isArray(item))
    return objectOf(names.slice(0, item.length).map((name, index): [string, unknown] => [name, item[index]]))
  return names.length === 1 ? objectOf([[names[0] ?? '', item]]) : item
}

/** @throws ConductError when it is no number */
export function concurrencyOf(turn: Turn, form: Items, instance: InstanceRow): number | null {
  const value = evaluateIn(turn, form.concurrency ?? null, sightOf(turn, instance))
  if (value === null) return null
  if (typeof value !== 'number') throw new ConductError('TypeError', 'The value of concurrency is not type of integer.')
  return Math.max(1, Math.floor(value))
}

export const newCounts = (count: number, concurrency: number | null): ItemCounts => ({
  count,
  concurrency,
  next: 0,
  active: 0,
  held: 0,
  failed: 0,
  canceled: 0,
})

/** Indexes of the items that may start now, `most` of them. Items that an earlier run has done are passed over. */
export function startableItems(turn: Turn, instance: InstanceRow, counts: ItemCounts, most: number): number[] {
  const free = Math.min(most, (counts.concurrency ?? Infinity) - counts.active)
  const indexes: number[] = []
  for (let index = counts.next; index < counts.count && indexes.length < free; index++)
    if (turn.draft.item(instance.id, index) === undefined) indexes.push(index)
  return indexes
}

/** The items that start first when none has, `most` of them. */
export function firstItems({ count, concurrency }: ItemCounts, most: number): number[] {
  return Array.from({ length: Math.min(count, concurrency ?? count, most) }, (_, index) => index)
}

/** The items are to start again. */
export function forgetItems({ draft }: Turn, { id, items }: InstanceRow): void {
  for (let index = 0; index < (items?.count ?? 0); index++) draft.removeItem(id, index)
}

/** Index of the first item from `next` on that has not started. */
export function nextItem(turn: Turn, instance: InstanceRow, counts: ItemCounts): number {
  let { next } = counts
  while (next < counts.count && turn.draft.item(instance.id, next) !== undefined) next++
  return next
}

const isHeldItem = (status: ItemStatus | undefined): boolean => status === 'pending' || status === 'paused'

/** Changes the status of an item and counts it. @returns undefined when the item is not one that can change */
export function setItemStatus(
  turn: Turn,
  instance: InstanceRow,
  index: number,
  status: ItemStatus,
): ItemCounts | undefined {
  const { draft } = turn
  const { items } = instance
  const before = draft.item(instance.id, index)
  if (items === null || before === undefined || !(before.status === 'running' || isHeldItem(before.status)))
    return undefined
  const row: ItemRow = { ...before, status }
  draft.setItem(row)
  const isFailed = status === 'failed' || status === 'timeout' || status === 'abandoned'
  return {
    ...items,
    active: items.active + Number(status === 'running') - Number(before.status === 'running'),
    held: items.held + Number(isHeldItem(status)) - Number(isHeldItem(before.status)),
    failed: items.failed + Number(isFailed),
    canceled: items.canceled + Number(status === 'canceled'),
  }
}

export function itemsStatus(turn: Turn, counts: ItemCounts): TaskStatus {
  const { status, request } = turn.draft.workflow
  if (counts.active > 0) {
    if (counts.canceled > 0 || request === 'cancel') return 'canceling'
    return counts.held > 0 || request === 'pause' ? 'pausing' : 'running'
  }
  // A workflow that waits for a person starts no items either.
  const isHeldBack = status === 'canceling' ? 'cancel' : status === 'pausing' || status === 'paused' ? 'pause' : 'none'
  return itemsTaskStatus[request ?? isHeldBack][remainderOf(counts)]
}

function remainderOf(counts: ItemCounts): ItemRemainder {
  if (counts.canceled > 0) return 'canceled'
  if (counts.held > 0) return 'held'
  if (counts.failed > 0) return 'failed'
  return counts.next < counts.count ? 'open' : 'done'
}

/** Whether the task may start further items as soon as the workflow runs. */
export function hasStartableItems(counts: ItemCounts, status: TaskStatus): boolean {
  if (counts.next >= counts.count) return false
  if (status !== 'running' && status !== 'paused') return false
  return counts.concurrency === null || counts.active < counts.concurrency
}
