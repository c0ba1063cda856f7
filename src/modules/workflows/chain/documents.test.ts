/** The chain in docs/workflows.md runs as the page says. */
import { readFileSync } from 'node:fs'
import { load } from 'js-yaml'
import { expect, test } from 'vitest'
import { Budget, defaultLimits } from '../../../lib/template/index.ts'
import { apply, emptyState, type Event, type State } from '../conductor/index.ts'
import { inspectText } from '../inspection/inspect.ts'
import { conductChain } from './conduct.ts'
import { readChain } from './definition.ts'
import { FIRST_VARIABLES, requestOf, variablesFrom } from './result.ts'
import { renderValue } from './template.ts'

const page = readFileSync(new URL('../../../../docs/workflows.md', import.meta.url), 'utf8')
const [metadata = '', definition = ''] = [
  ...page.slice(page.indexOf('## Action chains')).matchAll(/```yaml\n(.*?)```/gs),
].map(([, text = '']) => text)

/** Runs the example; ends each node with the next status. @returns the node and its parameters, in order */
function run(...statuses: ('succeeded' | 'failed')[]): { started: unknown[]; state: State } {
  const chain = readChain(definition, { action: 'publish_page', file: 'chains/publish_page.yaml' })
  if ('problem' in chain) throw new Error(chain.problem)
  let state = emptyState()
  const started: unknown[] = []
  const result = { stdout: 'done' }
  let event: Event | undefined = { kind: 'started', input: { page: 'home', copies: 2 } }
  while (event !== undefined) {
    const outcome = conductChain(chain, state, event, {
      render: (value, scope) => renderValue(value, scope, new Budget(defaultLimits)),
      outside: { hasAction: () => true, templates: () => ({ variables: {} }), resultOf: () => result },
    })
    if (outcome.changes === undefined) break
    state = apply(state, outcome.changes)
    event = undefined
    for (const command of outcome.commands) {
      if (command.kind !== 'start') continue
      const { notify } = requestOf(chain, { task: chain.graph.taskIndexes.get(command.task) ?? -1 }, undefined)
      started.push([command.task, command.input, ...(notify === undefined ? [] : [notify])])
      event = { kind: 'ended', instance: command.instance, status: statuses.shift() ?? 'succeeded', result }
    }
  }
  return { started, state }
}

const build = ['build', { cmd: 'make home', timeout: 120 }]
const copy = [
  'copy',
  { cmd: 'publish --copies 2 /srv/www/home' },
  { 'on-complete': { message: 'The page was copied.', routes: ['team'] } },
]

test('the example has no mistakes', () => {
  expect(load(metadata)).toMatchObject({ runner_type: 'action-chain', entry_point: 'chains/publish_page.yaml' })
  expect(inspectText(definition, { form: 'chain' })).toMatchObject({ entries: [] })
})

test('the example runs its nodes, and publishes', () => {
  const { started, state } = run()
  expect(started).toEqual([build, copy])
  expect([state.workflow.status, variablesFrom(state, FIRST_VARIABLES)]).toEqual([
    'succeeded',
    { target: '/srv/www/home', report: 'done' },
  ])
})

test('a failure leads to the node that explains it', () => {
  const explain = ['explain', { message: "Could not publish home: {'build': {'stdout': 'done'}}" }]
  expect(run('failed').started).toEqual([build, explain])
})
