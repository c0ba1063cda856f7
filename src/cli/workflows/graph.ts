/** The graph of a workflow as text, for Graphviz, and for Mermaid. */
import type { WorkflowGraph, WorkflowGraphTask } from '../../modules/workflows/types.ts'
import { printable } from '../output/print.ts'
import { expressionText } from './transitions.ts'

export const graphFormats = ['text', 'dot', 'mermaid'] as const
export type GraphFormat = (typeof graphFormats)[number]

export function renderGraph(graph: WorkflowGraph, format: GraphFormat): string {
  return format === 'text' ? renderText(graph) : format === 'dot' ? renderDot(graph) : renderMermaid(graph)
}

/** A block for each task, in the order in which a run can reach them. */
function renderText(graph: WorkflowGraph): string {
  const blocks = inOrder(graph).map((task) => {
    const targets = task.transitions.map((transition) => transition.do.map(printable).join(', '))
    const width = Math.min(24, Math.max(0, ...targets.map((text) => text.length)))
    const lines = task.transitions.map(({ when, publish }, index) =>
      [
        `-> ${(targets[index] ?? '').padEnd(width)}`,
        ...(when === null ? [] : [`when ${expressionText(when)}`]),
        ...(publish.length === 0 ? [] : [`publishes ${publish.map(printable).join(', ')}`]),
      ]
        .join('  ')
        .trimEnd(),
    )
    return [titleOf(task), ...[...factsOf(task), ...lines].map((line) => `    ${line}`)].join('\n')
  })
  const start = graph.start.length === 0 ? 'none' : graph.start.map(printable).join(', ')
  const limit = graph.timeout === null ? '' : `\nTimeout: ${expressionText(graph.timeout)} s`
  return `${[`Start: ${start}${limit}`, ...blocks].join('\n\n')}\n`
}

const titleOf = ({ name, action }: WorkflowGraphTask): string =>
  `${printable(name)}  (${action === null ? 'no action' : expressionText(action)})`

/** What is special about the task, a line each. */
function factsOf({
  join,
  join_need: need,
  inbound,
  is_split: isSplit,
  items,
  concurrency,
  retry,
  delay,
  timeout,
}: WorkflowGraphTask): string[] {
  const before = inbound.map(printable).join(', ')
  return [
    ...(join === null ? [] : [join === 'all' ? `join: all of ${before}` : `join: ${need} of ${before}`]),
    ...(isSplit ? [`once for each arrival from ${before}`] : []),
    ...(items === null
      ? []
      : [`items: ${expressionText(items)}${concurrency === null ? '' : `, ${expressionText(concurrency)} at a time`}`]),
    ...(delay === null ? [] : [`delay: ${expressionText(delay)} s`]),
    ...(timeout === null ? [] : [`timeout: ${expressionText(timeout)} s`]),
    ...(retry === null ? [] : [retryText(retry)]),
  ]
}

function retryText({ count, delay, when }: NonNullable<WorkflowGraphTask['retry']>): string {
  const parts = [
    `retry: ${expressionText(count)} more`,
    ...(delay === null ? [] : [`${expressionText(delay)} s apart`]),
    ...(when === null ? [] : [`when ${expressionText(when)}`]),
  ]
  return parts.join(', ')
}

/** Breadth first from the start; then those that nothing leads to. */
function inOrder({ start, tasks }: WorkflowGraph): WorkflowGraphTask[] {
  const byName = new Map(tasks.map((task) => [task.name, task]))
  const names = new Set(start)
  for (const name of names)
    for (const transition of byName.get(name)?.transitions ?? [])
      for (const target of transition.do) if (byName.has(target)) names.add(target)
  for (const { name } of tasks) names.add(name)
  return [...names].flatMap((name) => byName.get(name) ?? [])
}

/** Each transition to a task or an engine command, with a label. `retry` leads back to its own task. */
function edgesOf({ tasks }: WorkflowGraph): { from: string; to: string; label: string; isCommand: boolean }[] {
  const known = new Set(tasks.map(({ name }) => name))
  return tasks.flatMap(({ name: from, transitions }) =>
    transitions.flatMap(({ when, publish, do: targets }) =>
      targets.map((target) => {
        const to = target === 'retry' ? from : target
        const label = [
          ...(target === 'retry' ? ['retry'] : []),
          ...(when === null ? [] : [expressionText(when)]),
          ...(publish.length === 0 ? [] : [`publishes ${publish.join(', ')}`]),
        ]
        return { from, to, label: label.join('\n'), isCommand: !known.has(to) }
      }),
    ),
  )
}

const commandsOf = (graph: WorkflowGraph): string[] => [
  ...new Set(edgesOf(graph).flatMap(({ to, isCommand }) => (isCommand ? [to] : []))),
]

const labelOf = (task: WorkflowGraphTask): string =>
  [printable(task.name), ...(task.action === null ? [] : [expressionText(task.action)]), ...factsOf(task)].join('\n')

function renderDot(graph: WorkflowGraph): string {
  const quote = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&').replaceAll('\n', '\\n')}"`
  const nodes = graph.tasks.map((task) => {
    const attributes = [`label=${quote(labelOf(task))}`, ...(task.join === null ? [] : ['peripheries=2'])]
    return `  ${quote(task.name)} [${attributes.join(', ')}];`
  })
  const commands = commandsOf(graph).map((name) => `  ${quote(name)} [shape=plaintext];`)
  const edges = edgesOf(graph).map(
    ({ from, to, label }) => `  ${quote(from)} -> ${quote(to)}${label === '' ? '' : ` [label=${quote(label)}]`};`,
  )
  return ['digraph workflow {', '  node [shape=box];', ...nodes, ...commands, ...edges, '}', ''].join('\n')
}

function renderMermaid(graph: WorkflowGraph): string {
  const codes: Readonly<Record<string, string>> = {
    '"': '#quot;',
    '#': '#35;',
    '&': '#amp;',
    '<': '#lt;',
    '>': '#gt;',
    '`': '#96;',
    '\n': '<br/>',
  }
  const quote = (text: string): string => `"${text.replaceAll(/["#&<>`\n]/g, (sign) => codes[sign] ?? sign)}"`
  // Names may be words of Mermaid, such as `end`.
  const ids = new Map(graph.tasks.map(({ name }, index) => [name, `t${index}`]))
  for (const [index, name] of commandsOf(graph).entries()) ids.set(name, `c${index}`)
  const nodes = graph.tasks.map((task) => {
    const label = quote(labelOf(task))
    return `  ${ids.get(task.name)}${task.join === null ? `[${label}]` : `[[${label}]]`}`
  })
  const commands = commandsOf(graph).map((name) => `  ${ids.get(name)}([${quote(name)}])`)
  const edges = edgesOf(graph).map(
    ({ from, to, label }) => `  ${ids.get(from)} -->${label === '' ? '' : `|${quote(label)}|`} ${ids.get(to)}`,
  )
  return ['flowchart TD', ...nodes, ...commands, ...edges, ''].join('\n')
}
