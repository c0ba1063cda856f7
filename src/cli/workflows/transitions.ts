/** How transitions, joins and values of a workflow look in a terminal. */
import { writeJson } from '../../lib/json/index.ts'
import { clip } from '../../lib/log/index.ts'
import type {
  WorkflowExplanation,
  WorkflowFailure,
  WorkflowJoin,
  WorkflowTransition,
  WorkflowWait,
} from '../../modules/workflows/types.ts'
import { printable } from '../output/print.ts'

const MAX_VALUE_LENGTH = 500

/** A value in one line, shortened: JSON has it in full. */
export function valueText(value: unknown): string {
  return clip(printable(writeJson(value ?? null)).replaceAll('\n', ' '), MAX_VALUE_LENGTH)
}

/** A condition, or another part of a definition, in one line. */
export function expressionText(value: unknown): string {
  return typeof value === 'string' ? printable(value.trim()).replaceAll(/\s*\n\s*/g, ' ') : valueText(value)
}

const MAX_READS = 8

/** `ctx(tries) is 3, …` */
function readsText(reads: WorkflowTransition['reads']): string {
  const shown = reads.slice(0, MAX_READS).map(({ name, args, value }) => {
    const words = args.map((arg) => (typeof arg === 'string' ? printable(arg) : valueText(arg)))
    return `${printable(name)}(${words.join(', ')}) is ${clip(valueText(value), 200)}`
  })
  return [...shown, ...(reads.length > MAX_READS ? [`${reads.length - MAX_READS} more`] : [])].join(', ')
}

/**
 * A line for each entry of `next`; below it what the condition read, and why it failed.
 *
 * @param failures errors that are shown elsewhere, with more about them
 */
export function transitionLines(
  transitions: readonly WorkflowTransition[],
  failures: readonly { readonly message: string }[] = [],
): string[] {
  const targets = transitions.map((transition) => transition.do.map(printable).join(', ') || 'end')
  const width = Math.min(24, Math.max(0, ...targets.map((text) => text.length)))
  return transitions.flatMap((transition, index) => {
    const { when, value, is_taken: isTaken, published, reads, errors, has_changed: hasChanged } = transition
    const names = Object.entries(published)
    const parts = [
      `${isTaken ? 'taken    ' : 'not taken'}  -> ${(targets[index] ?? '').padEnd(width)}`,
      ...(when === null ? [] : [`when ${expressionText(when)}${errors.length > 0 ? '' : ` = ${valueText(value)}`}`]),
      ...(names.length === 0
        ? []
        : [`publishes ${names.map(([name, each]) => `${printable(name)} = ${valueText(each)}`).join(', ')}`]),
    ]
    const facts = reads.filter(({ name }) => name !== 'succeeded' && name !== 'failed' && name !== 'completed')
    return [
      parts.join('  ').trimEnd(),
      ...(facts.length === 0 ? [] : [`    ${readsText(facts)}`]),
      ...(hasChanged ? ['    What the condition reads has changed since the task ended.'] : []),
      ...errors.map((error) =>
        failures.some(({ message }) => message === error) ? '    error: see below' : `    error: ${printable(error)}`,
      ),
    ]
  })
}

export function joinText({ need, arrived, missing }: WorkflowJoin): string {
  const list = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.map(printable).join(', '))
  return `join: needs ${need}, arrived: ${list(arrived)}${missing.length === 0 ? '' : `, missing: ${list(missing)}`}`
}

/** `item 3: abandoned (6a00…)` */
export function unsuccessfulLine({ execution, item, status }: Unsuccessful): string {
  return `${item === null ? 'action' : `item ${item}`}: ${printable(status)} (${printable(execution)})`
}

type Unsuccessful = WorkflowExplanation['tasks'][number]['unsuccessful'][number]

/** Name of a task, and its route where that says something. */
export function taskTitle(task: string, route: number | null): string {
  return `${printable(task)}${route === null || route === 0 ? '' : ` (route ${route})`}`
}

const waitTexts: Readonly<Record<WorkflowWait['kind'], string>> = {
  action: 'an action runs',
  answer: 'an inquiry waits for its answer',
  arrivals: 'the join lacks arrivals',
  child: 'a child workflow is paused',
  delay: 'an action waits for its delay',
  items: 'further items start when the workflow goes on',
  resume: 'the workflow is paused; resume it',
  retry: 'the next attempt starts when the workflow goes on',
  start: 'it starts when the workflow goes on',
}

export function waitLine({ kind, task, route, item, execution, until, join }: WorkflowWait): string {
  const place = task === null ? '' : `${taskTitle(task, route)}${item === null ? '' : `, item ${item}`}: `
  const more = [
    ...(execution === null ? [] : [printable(execution)]),
    ...(until === null ? [] : [`until ${printable(until)}`]),
    ...(join === null ? [] : [joinText(join)]),
  ]
  const known: Readonly<Record<string, string>> = waitTexts
  return `${place}${known[kind] ?? printable(kind)}${more.length === 0 ? '' : ` (${more.join(', ')})`}`
}

const MAX_VARIABLES = 20

/** The message, the expression and what it saw. */
export function failureLines({ message, expression, variables, reads }: WorkflowFailure): string[] {
  const names = Object.entries(variables ?? {})
  return [
    `error: ${printable(message)}`,
    ...(expression === null ? [] : [`    expression: ${expressionText(expression)}`]),
    ...(reads.length === 0 ? [] : [`    it read: ${readsText(reads)}`]),
    ...(variables === null
      ? []
      : [
          `    it saw: ${
            names.length === 0
              ? 'no variables'
              : names
                  .slice(0, MAX_VARIABLES)
                  .map(([name, value]) => `${printable(name)} = ${clip(valueText(value), 200)}`)
                  .join(', ')
          }${names.length > MAX_VARIABLES ? `, and ${names.length - MAX_VARIABLES} more` : ''}`,
        ]),
  ]
}
