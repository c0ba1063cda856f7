/** How the explanation of a workflow looks in a terminal. */
import type { WorkflowExplanation } from '../../modules/workflows/types.ts'
import { colorStatus, printable } from '../output/print.ts'
import { failureLines, joinText, taskTitle, transitionLines, unsuccessfulLine, waitLine } from './transitions.ts'

export function renderExplanation(explanation: WorkflowExplanation, isColored: boolean): string {
  const { message, tasks, failures, waits_for: waits } = explanation
  const { tasks_left_out: moreTasks, failures_left_out: moreFailures, waits_left_out: moreWaits } = explanation
  const paint = (status: string): string => (isColored ? colorStatus(status) : printable(status))
  const blocks = tasks.map(({ task, route, status, join, transitions, unsuccessful }) => {
    const lines = [
      ...(join === null ? [] : [joinText(join)]),
      ...unsuccessful.map(unsuccessfulLine),
      ...(transitions === null ? ['Nothing follows: its action could not be started.'] : transitionLines(transitions)),
    ]
    return [`${taskTitle(task, route)}  ${paint(status)}`, ...indented(lines)].join('\n')
  })
  const errors = failures.flatMap((failure) => {
    const [first = '', ...more] = failureLines(failure)
    return [failure.task === null ? first : `${taskTitle(failure.task, failure.route)}: ${first}`, ...more]
  })
  const sections = [
    printable(message),
    ...(moreTasks > 0 ? [`${moreTasks} earlier passes of tasks are left out. Name a task with --task.`] : []),
    ...blocks,
    ...(errors.length === 0 ? [] : [['Errors:', ...indented(errors), ...leftOut(moreFailures)].join('\n')]),
    ...(waits.length === 0
      ? []
      : [['It waits for:', ...indented(waits.map(waitLine)), ...leftOut(moreWaits)].join('\n')]),
  ]
  return `${sections.join('\n\n')}\n`
}

const indented = (lines: readonly string[]): string[] => lines.map((line) => `   ${line}`)

const leftOut = (count: number): string[] => (count === 0 ? [] : [`   and ${count} more`])
