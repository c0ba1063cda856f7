/** The tasks of a definition as boxes, and what leads from one to the other. */
import type { WorkflowGraph } from '../../api/records.ts'
import { writeJson } from '../../json.ts'
import type { GraphEdge } from './layout.ts'

/** Of more tasks a drawing is no help. */
export const MAX_DRAWN_TASKS = 200

export interface GraphBox {
  name: string
  /** command: of the engine, such as `fail`. missing: a transition leads to it, and no task has the name. */
  kind: 'task' | 'command' | 'missing'
  /** What it runs; null: no action. */
  action: string | null
  isJoin: boolean
  /** `join all`, `× n`, `retry 2`, `delay 5 s`, `timeout 9 s` */
  marks: readonly string[]
}

export interface GraphLink extends GraphEdge {
  /** Conditions of the transitions, each once; empty: always. */
  conditions: readonly string[]
}

export interface GraphModel {
  /** Seconds that the workflow may take, or an expression; null: no limit. */
  timeout: string | null
  starts: readonly string[]
  boxes: readonly GraphBox[]
  /** Each pair once. */
  links: readonly GraphLink[]
}

const commands = new Set(['continue', 'noop', 'fail'])
/** It repeats the task itself, which a mark says. */
const RETRY = 'retry'

export function modelOf({ start, timeout: limit, tasks }: WorkflowGraph): GraphModel {
  const boxes = new Map<string, GraphBox>()
  for (const { name, action, join, items, retry, delay, timeout, transitions } of tasks) {
    const isRetried = retry !== null || transitions.some(({ do: targets }) => targets.includes(RETRY))
    const count = retry?.count
    const marks = [
      ...(join === null ? [] : [`join ${textOf(join)}`]),
      ...(items === null ? [] : ['× n']),
      ...(isRetried ? [typeof count === 'number' ? `retry ${count}` : 'retry'] : []),
      ...(delay === null ? [] : [typeof delay === 'number' ? `delay ${delay} s` : 'delay']),
      ...(timeout === null ? [] : [typeof timeout === 'number' ? `timeout ${timeout} s` : 'timeout']),
    ]
    boxes.set(name, { name, kind: 'task', action, isJoin: join !== null, marks })
  }
  const links = new Map<string, GraphLink>()
  for (const { name, transitions } of tasks) {
    for (const { when, do: targets } of transitions) {
      for (const target of targets) {
        if (target === RETRY) continue
        if (!boxes.has(target)) {
          const kind = commands.has(target) ? 'command' : 'missing'
          boxes.set(target, { name: target, kind, action: null, isJoin: false, marks: [] })
        }
        const key = linkKey(name, target)
        const known = links.get(key)
        const condition = when === null ? [] : [textOf(when)]
        // One that is always taken needs no other.
        const conditions =
          known === undefined
            ? condition
            : known.conditions.length === 0 || condition.length === 0
              ? []
              : [...new Set([...known.conditions, ...condition])]
        links.set(key, { from: name, to: target, conditions })
      }
    }
  }
  const timeout = limit === null ? null : textOf(limit)
  return { timeout, starts: start, boxes: [...boxes.values()], links: [...links.values()] }
}

/** Names a link. Names of tasks have no line breaks. */
export const linkKey = (from: string, to: string): string => `${from}\n${to}`

/** Of a value of the definition: an expression, a number. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : writeJson(value)
}
