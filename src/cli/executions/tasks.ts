/** Tasks of workflows, as their executions tell of them (contract 08, 8.12). */
import { textOrEmpty, toObject } from '../connection/responses.ts'
import { attributeOf, cellText, printable, type Json } from '../output/print.ts'
import { shownId } from './calls.ts'

const workflowRunners: ReadonlySet<string> = new Set(['action-chain', 'orquesta'])

/** Attributes that the functions of this file read. */
export const taskAttributes = [
  'id',
  'status',
  'parent',
  'start_timestamp',
  'end_timestamp',
  'elapsed_seconds',
  'action.ref',
  'action.runner_type',
  'liveaction.action_is_workflow',
  'context.orquesta',
  'context.chain',
].join(',')

export function isWorkflow(record: Json): boolean {
  return (
    attributeOf(record, 'liveaction.action_is_workflow') === true ||
    workflowRunners.has(textOrEmpty(attributeOf(record, 'action.runner_type')))
  )
}

/** Name of the task, with its item, its route and its attempt where they say something; empty: no task. */
export function taskLabel(record: Json): string {
  const orquesta = toObject(attributeOf(record, 'context.orquesta'))
  const name = textOrEmpty(orquesta['task_name']) || textOrEmpty(attributeOf(record, 'context.chain.name'))
  const part = (word: string, value: unknown, isShown: (value: number) => boolean): string => {
    const number = value === undefined ? NaN : Number(value)
    return isShown(number) ? ` ${word} ${number}` : ''
  }
  return `${cellText(name)}${part('item', orquesta['item_id'], (item) => item >= 0)}${part(
    'route',
    orquesta['task_route'],
    (route) => route > 0,
  )}${part('attempt', orquesta['attempt'], (attempt) => attempt > 1)}`
}

/** Whether it asks a person. */
export function isOpenInquiry(record: Json): boolean {
  return record['status'] === 'pending' && attributeOf(record, 'action.runner_type') === 'inquirer'
}

/** The command that answers it. */
export function inquiryAdvice(record: Json): string {
  const id = textOrEmpty(record['id'])
  const label = printable(taskLabel(record))
  const what = label === '' ? `Inquiry ${shownId(id)}` : `Task ${label}`
  return `${what} waits for an answer. To answer, execute:\n svc inquiry respond ${shownId(id)}\n`
}
