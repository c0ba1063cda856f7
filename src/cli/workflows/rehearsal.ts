/** How a rehearsal looks in a terminal. */
import type { Difference, Rehearsal, RehearsedAction, RehearsedTask } from '../../modules/workflows/types.ts'
import { colorStatus, printable } from '../output/print.ts'
import { toYaml } from '../output/yaml.ts'
import { failureLines, joinText, taskTitle, transitionLines, valueText, waitLine } from './transitions.ts'

/** Of one task; the others are counted. Failed ones go first. */
const MAX_ACTIONS = 20

export function renderRehearsal(rehearsal: Rehearsal, differences: readonly Difference[], isColored: boolean): string {
  const paint = (status: string): string => (isColored ? colorStatus(status) : status)
  const { tasks, status, output, errors, failures, timed_out_after: late } = rehearsal
  const blocks = tasks.map((task, index) => renderTask(task, index + 1, paint))
  const sections = [
    ...blocks,
    ...(failures.length === 0 ? [] : [failures.flatMap(failureLines).join('\n')]),
    [
      `Workflow: ${paint(status)}${late === null ? '' : `, it took longer than ${late} s`}`,
      ...(output === null ? [] : [`Output:\n${indent(toYaml(output))}`]),
      ...(errors.length === 0
        ? []
        : [
            'Errors:',
            ...errors.map(
              ({ task_id: task, message }) =>
                `  ${task === undefined ? '' : `${printable(task)}: `}${printable(message)}`,
            ),
          ]),
      ...(rehearsal.waits_for.length === 0
        ? []
        : ['It waits for:', ...rehearsal.waits_for.map((wait) => `  ${waitLine(wait)}`)]),
    ].join('\n'),
    ...notesOf(rehearsal),
    ...(differences.length === 0 ? [] : [renderDifferences(differences)]),
  ]
  return `${sections.join('\n\n')}\n`
}

function renderTask(shown: RehearsedTask, number: number, paint: (status: string) => string): string {
  const { task, route, status, join, items, actions, transitions, failures } = shown
  const title = `${number}. ${taskTitle(task, route)}`
  const isPlain = actions.length === 0
  const head = isPlain ? `${title}  ${items === null ? 'no action' : itemsText(items)}, ${paint(status)}` : title
  const lines = [
    ...(join === null ? [] : [joinText(join)]),
    ...(isPlain ? [] : actionLines(actions, items, paint)),
    ...(items === null || isPlain ? [] : [`${itemsText(items)}: ${paint(status)}`]),
    ...transitionLines(transitions, failures),
    ...failures.flatMap(failureLines),
  ]
  return [head, ...lines.map((line) => `   ${line}`)].join('\n')
}

function actionLines(
  actions: readonly RehearsedAction[],
  items: number | null,
  paint: (status: string) => string,
): string[] {
  const isShort = actions.length > MAX_ACTIONS
  const ordered = isShort
    ? [...actions].sort((a, b) => Number(a.status === 'succeeded') - Number(b.status === 'succeeded'))
    : actions
  const lines = ordered.slice(0, MAX_ACTIONS).flatMap((run, index) => {
    const before = ordered[index - 1]
    const isSame =
      before !== undefined && before.action === run.action && valueText(before.input) === valueText(run.input)
    const facts = [
      ...(items === null ? [] : [`item ${run.item ?? 0}`]),
      ...(run.attempt === 1 ? [] : [`attempt ${run.attempt}`]),
      ...(run.delay > 0 ? [`after ${run.delay} s`] : []),
      ...(run.timeout === null ? [] : [`timeout ${run.timeout} s`]),
    ]
    const mock = run.is_mocked ? '' : '  (no mock)'
    const taken = run.ended_at === null ? 0 : run.ended_at - run.started_at
    const time = taken > 0 ? ` in ${Number(taken.toPrecision(12))} s` : ''
    const end = `${paint(run.status)}${time}${run.ended_at === null ? '' : ` ${valueText(run.result)}`}${mock}`
    return [
      ...(isSame ? [] : [`${printable(run.action)} ${valueText(run.input ?? {})}`]),
      `  ${facts.length === 0 ? '' : `${facts.join(', ')}: `}${end}`,
    ]
  })
  return isShort ? [...lines, `  and ${actions.length - MAX_ACTIONS} more`] : lines
}

function notesOf({ without_mock: without, unused_mocks: unused, problem }: Rehearsal): string[] {
  const names = (list: readonly string[]): string => list.map(printable).join(', ')
  const notes = [
    ...(without.length === 0 ? [] : [`Without a mock, so that they succeeded with an empty result: ${names(without)}`]),
    ...(unused.length === 0 ? [] : [`Mocks of tasks that ran no action: ${names(unused)}`]),
    ...(problem === null ? [] : [`Stopped: ${problem}`]),
  ]
  return notes.length === 0 ? [] : [notes.join('\n')]
}

function renderDifferences(differences: readonly Difference[]): string {
  const lines = differences.flatMap(({ path, expected, actual }) => [
    `  ${printable(path)}`,
    `    expected: ${sideText(expected)}`,
    `    actual:   ${sideText(actual)}`,
  ])
  return ['Not as expected:', ...lines].join('\n')
}

const itemsText = (count: number): string => `${count} ${count === 1 ? 'item' : 'items'}`

const sideText = (value: unknown): string => (value === undefined ? 'nothing' : valueText(value))

const indent = (text: string): string => text.trimEnd().replaceAll(/^(?=.)/gm, '  ')
