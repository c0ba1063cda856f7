/** What an event of a workflow brings about, as lines for people: they are stored as output of its execution. */
import { isObject } from '../../../lib/schema/index.ts'
import type { SecretValues } from '../../../lib/secrets/index.ts'
import { isFinal } from '../../executions/index.ts'
import type { Execution, ExecutionStatus } from '../../executions/types.ts'
import {
  ACTION_FAILED,
  isCompleted,
  type Changes,
  type Command,
  type Event,
  type InstanceRow,
  type State,
  type WorkflowStatus,
} from '../conductor/index.ts'
import type { Definition } from '../definition/model.ts'

/** Items of a task that have lines of their own because they failed, or wait for a person: the first ones. */
const MAX_ITEM_LINES = 10
/** A task with this many items says when each tenth of them has ended. */
const MANY_ITEMS = 100

export interface Story {
  readonly graph: Definition
  /** The execution of the workflow before the event. */
  readonly workflow: Pick<Execution, 'action' | 'context' | 'start_timestamp' | 'status'>
  readonly before: State
  readonly changes: Changes
  readonly commands: readonly Command[]
  readonly event: Event
  /** The execution that the event is about. */
  readonly child: Execution | undefined
  /** Id of the execution that a command starts. */
  readonly idOf: (command: StartOf) => string | undefined
  /** Why svc itself ends the workflow. */
  readonly endReason: string | undefined
  /** Since the start of the workflow. */
  readonly seconds: number
  /** Since the start of an instance; undefined: it has not started */
  readonly secondsOf: (instance: number) => number | undefined
}

/** Without its line end. It can contain secrets, and texts of strangers: `writeLines` makes output of it. */
export interface Line {
  readonly text: string
  /** The workflow has ended, and how. */
  readonly isEnd?: true
}

type StartOf = Extract<Command, { readonly kind: 'start' }>

/** In the order in which it happens. */
export function linesOf(story: Story): Line[] {
  const { workflow, event, before, changes } = story
  const { status } = changes.workflow
  // Its output is complete: the reader of an execution that has ended reads no further.
  if (isFinal(workflow.status)) return event.kind === 'cancel' ? [endOf(story, workflow.status)] : []
  const ofStatus = status === before.workflow.status ? [] : linesOfStatus(story, before.workflow.status, status)
  const mayStart = status === 'running' || status === 'resuming'
  return [
    ...(event.kind === 'rerun' ? [toLine(`${nameOf(workflow)}: repeats ${event.tasks.join(', ')}`)] : []),
    ...(mayStart ? ofStatus : []),
    ...[...linesOfAction(story), ...linesOfInstances(story), ...linesOfStarts(story)].map(toLine),
    ...(mayStart ? [] : ofStatus),
  ]
}

const toLine = (text: string): Line => ({ text })

/**
 * A failure that no event of the workflow brings about: it does not start, or its result cannot be taken.
 *
 * @param seconds since its start; absent: it does not start
 */
export function failureLine(execution: Pick<Execution, 'action'>, result: unknown, seconds?: number): Line {
  const after = seconds === undefined ? '' : ` after ${secondsText(seconds)}`
  return { text: `${nameOf(execution)}: failed${after}${reasonText(result, 'failed')}`, isEnd: true }
}

const MAX_LINES = 10_000
const MAX_LINE_LENGTH = 500
/** Of a line before it is masked. */
const MAX_READ_LENGTH = 16_384

/**
 * The text of lines, one below the other, with a line end after each. Beyond 10,000 there are only those about the end.
 *
 * @param count lines that the execution has already
 * @param secrets undefined: the workflow knows none
 */
export function writeLines(
  lines: readonly Line[],
  { count, secrets }: { readonly count: number; readonly secrets: SecretValues | undefined },
): string {
  const written: string[] = []
  for (const { text, isEnd } of lines) {
    const number = count + written.length
    if (number >= MAX_LINES && isEnd !== true) {
      if (number === MAX_LINES) written.push(`Further lines are left out: there are ${MAX_LINES} already.`)
      continue
    }
    const shown = maskStart(text, secrets).replace(/[\p{Cc}\p{Cf}\p{Cs}\s]+/gu, ' ')
    const isCut = shown.length > MAX_LINE_LENGTH
    written.push(isCut ? `${shown.slice(0, MAX_LINE_LENGTH).replace(/\p{Cs}$/u, '')}…` : shown)
  }
  return written.map((line) => `${line}\n`).join('')
}

/** The filter keeps back what can be the start of a secret that the cut splits. */
function maskStart(text: string, secrets: SecretValues | undefined): string {
  const start = text.slice(0, MAX_READ_LENGTH)
  if (secrets === undefined) return start
  return text.length > MAX_READ_LENGTH ? secrets.stream().filter(start) : secrets.maskText(start)
}

const nameOf = ({ action }: Pick<Execution, 'action'>): string => `Workflow ${action.ref}`

/** The action that the event is about: how it ended, or why it waits. */
function linesOfAction(story: Story): string[] {
  const { event, child } = story
  if (child === undefined || !('instance' in event)) return []
  const instance = story.before.instances.get(event.instance)
  if (instance === undefined) return []
  const { item } = event
  const label = labelOf(story, instance, instance.retries, item)
  const { items } = instance
  switch (event.kind) {
    case 'pending':
      return item !== undefined && (items?.held ?? 0) >= MAX_ITEM_LINES
        ? []
        : [`${label}: waits for an answer: svc inquiry respond ${child.id}`]
    case 'child paused':
      return item !== undefined && (items?.held ?? 0) >= MAX_ITEM_LINES ? [] : [`${label}: paused (${child.id})`]
    case 'child resumed':
      return item === undefined ? [`${label}: goes on (${child.id})`] : []
    case 'ended': {
      const end = `${label}: ${child.status} after ${secondsText(child.elapsed_seconds ?? 0)} (${child.id})${reasonText(event.result, child.status)}`
      if (item !== undefined)
        return linesOfItem(instance, labelOf(story, instance, instance.retries), end, child.status)
      return [`${end}${retryText(story, instance)}`]
    }
    default:
      return []
  }
}

/** @param end the line about its end */
function linesOfItem({ items }: InstanceRow, label: string, end: string, status: ExecutionStatus): string[] {
  if (items === null) return []
  const isFailure = status !== 'succeeded'
  const failed = items.failed + items.canceled
  const lines = isFailure && failed < MAX_ITEM_LINES ? [end] : []
  const { count } = items
  const ended = items.next - items.active - items.held + 1
  const tenth = (number: number): number => Math.floor((number * 10) / count)
  if (count < MANY_ITEMS || ended >= count || tenth(ended) === tenth(ended - 1)) return lines
  const failures = failed + Number(isFailure)
  return [...lines, `${label}: ${ended} of ${count} items have ended${failures === 0 ? '' : `, ${failures} failed`}`]
}

/** Instances that end without an action of their own: with their last item, without an action, before it could start. */
function linesOfInstances(story: Story): string[] {
  const { before, changes, event, graph } = story
  const of = 'instance' in event ? event : undefined
  const lines: string[] = []
  for (const [id, instance] of changes.instances) {
    const seen = before.instances.get(id)
    if (instance === undefined || graph.tasks[instance.task]?.kind !== 'task') continue
    const isRepeated = seen !== undefined && instance.retries > seen.retries
    if (!isRepeated && (!isCompleted(instance.status) || (seen !== undefined && isCompleted(seen.status)))) continue
    if (of?.instance === id && of.item === undefined && story.child !== undefined) continue
    if (instance.order === null && instance.status !== 'failed') continue
    const label = labelOf(story, instance, seen?.retries ?? instance.retries)
    const seconds = (seen?.order ?? null) === null ? undefined : story.secondsOf(id)
    const after = seconds === undefined ? '' : ` after ${secondsText(seconds)}`
    const status = isRepeated ? 'failed' : instance.status
    const parts = [`${label}: ${status}${after}`]
    const items = instance.items ?? seen?.items ?? null
    if (items !== null) {
      const isEnd = of?.instance === id && story.child !== undefined
      const failed = items.failed + Number(instance.items === null && isEnd && story.child?.status !== 'succeeded')
      parts.push(`, ${items.count} items${failed === 0 ? '' : `, ${failed} failed`}`)
      if (items.canceled > 0) parts.push(`, ${items.canceled} canceled`)
    }
    const error = status === 'failed' ? newErrors(changes).find(({ instance: owner }) => owner === id) : undefined
    if (error !== undefined && error.entry.message !== ACTION_FAILED) parts.push(`: ${error.entry.message}`)
    lines.push(`${parts.join('')}${seen === undefined ? '' : retryText(story, seen)}`)
  }
  return lines
}

function linesOfStarts(story: Story): string[] {
  const { before, changes } = story
  const lines: string[] = []
  const told = new Set<number>()
  for (const command of story.commands) {
    if (command.kind !== 'start') continue
    const { instance: id, item, attempt, action, delay } = command
    const instance = changes.instances.get(id) ?? before.instances.get(id)
    if (instance === undefined) continue
    const label = labelOf(story, instance, attempt)
    const when = delay > 0 ? ` in ${delay} s` : ''
    if (item === undefined) {
      lines.push(`${label}: starts ${action}${when} (${story.idOf(command) ?? ''})`)
      continue
    }
    const seen = before.instances.get(id)
    const hasBegun = (seen?.items?.next ?? 0) > 0 && seen?.retries === instance.retries
    if (hasBegun || told.has(id)) continue
    told.add(id)
    const { count, concurrency } = instance.items ?? { count: 1, concurrency: null }
    const atOnce = concurrency === null || concurrency >= count ? '' : `, ${concurrency} at once`
    lines.push(`${label}: starts ${action}${when}, ${count} items${atOnce}`)
  }
  return lines
}

function linesOfStatus(story: Story, before: WorkflowStatus, status: WorkflowStatus): Line[] {
  const says = (what: string): Line[] => [toLine(`${nameOf(story.workflow)}: ${what}${byText(story)}`)]
  const isHalted = before === 'paused' || before === 'pausing'
  switch (status) {
    case 'pausing':
      return says('pausing')
    case 'paused':
      return says('paused')
    case 'resuming':
    case 'running':
      return isHalted ? says(story.event.kind === 'resume' ? 'resumed' : 'goes on') : []
    case 'canceling':
      return says('canceling')
    case 'failed':
    case 'timeout':
    case 'canceled':
      return [endOf(story, status)]
    default:
      return []
  }
}

function endOf(story: Story, status: ExecutionStatus): Line {
  return { text: endText(story, status), isEnd: true }
}

function endText(story: Story, status: ExecutionStatus): string {
  const whole = `${nameOf(story.workflow)}: ${status} after ${secondsText(story.seconds)}`
  if (story.endReason !== undefined) return `${whole}: ${story.endReason}`
  const end = `${whole}${byText(story)}`
  const errors = status === 'failed' ? newErrors(story.changes) : []
  // The failure of an action may be one that the workflow handles.
  const error = (errors.find(({ entry }) => entry.message !== ACTION_FAILED) ?? errors[0])?.entry
  const { message, task_id: task } = error ?? { message: ACTION_FAILED, task_id: endedTask(story) }
  if (message === ACTION_FAILED) return status !== 'failed' || task === undefined ? end : `${end}: task ${task} failed`
  return `${end}: ${task === undefined ? '' : `in task ${task}: `}${message}`
}

/** Name of the task whose action the event is about. An error that repeats another one is not noted again. */
function endedTask({ event, before, graph }: Story): string | undefined {
  const instance = event.kind === 'ended' ? before.instances.get(event.instance) : undefined
  return instance === undefined ? undefined : graph.tasks[instance.task]?.name
}

const newErrors = ({ errors }: Changes) =>
  [...errors.values()].filter((row) => row !== undefined).sort((a, b) => a.id - b.id)

const requesters = { pause: 'paused_by', resume: 'resumed_by', cancel: 'cancelled_by' } as const

/** Who has asked for it; empty: it follows from something else. */
function byText({ event, workflow }: Story): string {
  if (event.kind !== 'pause' && event.kind !== 'resume' && event.kind !== 'cancel') return ''
  const user = workflow.context[requesters[event.kind]]
  return typeof user === 'string' ? `, requested by ${user}` : ''
}

/** @param seen the instance before */
function retryText({ changes }: Story, seen: InstanceRow): string {
  const now = changes.instances.get(seen.id)
  if (now === undefined || now.retries <= seen.retries) return ''
  const most = now.retry === null ? '' : ` of ${now.retry.count + 1}`
  return `; attempt ${now.retries + 1}${most} follows`
}

/** The same as the command line shows of an execution: the route and the attempt where they say something. */
function labelOf({ graph }: Story, { task, route }: InstanceRow, attempt: number, item?: number): string {
  const name = graph.tasks[task]?.name ?? ''
  const parts = [
    `Task ${name}`,
    ...(item === undefined ? [] : [`item ${item}`]),
    ...(route > 0 ? [`route ${route}`] : []),
    ...(attempt > 0 ? [`attempt ${attempt + 1}`] : []),
  ]
  return parts.join(' ')
}

const secondsText = (seconds: number): string => `${seconds.toFixed(1)} s`

/** Why an action has failed, where its result says so in a few words. */
function reasonText(result: unknown, status: ExecutionStatus): string {
  if (status === 'succeeded' || status === 'canceled' || !isObject(result)) return ''
  const { error, errors, return_code: code, exit_code: exit } = result
  if (typeof error === 'string' && error.trim() !== '') return `: ${error}`
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined
  if (isObject(first) && typeof first['message'] === 'string') {
    if (first['message'] !== ACTION_FAILED) return `: ${first['message']}`
    return typeof first['task_id'] === 'string' ? `: task ${first['task_id']} failed` : ''
  }
  const number = code ?? exit
  return typeof number === 'number' && number !== 0 ? `: exit code ${number}` : ''
}
