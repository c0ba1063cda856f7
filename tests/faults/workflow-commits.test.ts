/**
 * A workflow ends the same, whichever of its commits fails once: refused by the disk, or lost against another change.
 * Nothing runs twice.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { storageFailed } from '../../src/core/errors.ts'
import { Conflict, type Database } from '../../src/db/index.ts'
import { startEngine } from '../helpers/engine.ts'
import { makeFolder } from '../helpers/folders.ts'
import { tier } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

const workflows = {
  outer: `
version: 1.0
vars: [{list: [1, 2, 3]}]
tasks:
  begin:
    action: test.do text="begin"
    next: [{do: 'again, each, inner'}]
  again:
    action: test.do text="fails"
    retry: {count: 1}
    next: [{when: <% failed() %>, publish: [{again: failed}], do: end}]
  each:
    with: {items: <% ctx(list) %>, concurrency: 2}
    action: test.do
    input: {text: "<% str(item()) %>"}
    next: [{when: <% succeeded() %>, publish: [{each: <% result().select($.text) %>}], do: end}]
  inner:
    action: test.inner
    next: [{when: <% succeeded() %>, publish: [{inner: <% result().output.text %>}], do: end}]
  end:
    join: all
    action: test.do text="end"
output:
  - again: <% ctx(again) %>
  - each: <% ctx(each) %>
  - inner: <% ctx(inner) %>
`,
  inner: `
version: 1.0
tasks:
  first:
    action: test.do text="first"
    next: [{do: second}]
  second:
    action: test.do text="second"
    next: [{publish: [{text: <% result().text %>}]}]
output:
  - text: <% ctx(text) %>
`,
}

const faults = {
  /** Nothing is stored. */
  refused: () => Promise.reject(storageFailed(new Error('no'))),
  /** Nothing is stored: somebody else was faster. */
  conflict: () => Promise.reject(new Conflict('no')),
} as const
type Fault = keyof typeof faults

interface End {
  status: string | undefined
  result: unknown
  /** Task, item, attempt and status of each action, sorted. */
  actions: string[]
  /** Executions whose action ran more than once. */
  repeated: string[]
  writes: number
}

/** @param failing number of the write that fails once, from 1 on; undefined: none */
async function runOnce(fault: Fault | undefined, failing: number | undefined): Promise<End> {
  const folder = makeFolder()
  mkdirSync(join(folder.path, 'actions'))
  for (const [name, text] of Object.entries(workflows))
    writeFileSync(join(folder.path, 'actions', `${name}.yaml`), text)
  const runs = new Map<string, number>()
  let writes = 0
  let isArmed = false
  const failOnce = (real: Database): Database => ({
    ...real,
    write(unit) {
      if (!isArmed) return real.write(unit)
      writes += 1
      if (writes !== failing || fault === undefined) return real.write(unit)
      return faults[fault]()
    },
  })
  const engine = await startEngine({
    around: failOnce,
    parameters: { text: { type: 'string' } },
    workflows: { folder: folder.path, names: Object.keys(workflows) },
    run: ({ executionId, actionParameters: { text } }) => {
      runs.set(executionId, (runs.get(executionId) ?? 0) + 1)
      return Promise.resolve({ status: text === 'fails' ? 'failed' : 'succeeded', result: { text } })
    },
  })
  try {
    isArmed = true
    const known = (): string | undefined =>
      engine.database.first(
        engine.database.build.selectFrom('executions').select('id').where('action_ref', '=', 'test.outer'),
      )?.id
    // A client that hears of a failure asks again, unless it finds what it has asked for.
    const request = (): Promise<string> => engine.request({ action: 'test.outer' })
    const id = await request().catch(() => known() ?? request())
    await waitFor('its end', () => ['succeeded', 'failed', 'canceled'].includes(engine.statusOf(id) ?? ''), 60_000)
    const rows = engine.database.all(
      engine.database.build
        .selectFrom('workflow_actions')
        .innerJoin('executions', 'executions.id', 'workflow_actions.execution')
        .select(['context', 'item', 'attempt', 'status']),
    )
    const taskOf = (context: string): string =>
      (JSON.parse(context) as { orquesta: { task_name: string } }).orquesta.task_name // as the server writes it
    return {
      status: engine.statusOf(id),
      result: engine.executions.findWithResult(id)?.result,
      actions: rows
        .map(({ context, item, attempt, status }) => `${taskOf(context)} ${item ?? ''} ${attempt} ${status}`)
        .sort(),
      repeated: [...runs].filter(([, count]) => count > 1).map(([execution]) => execution),
      writes,
    }
  } finally {
    await engine.stop()
    folder.remove()
  }
}

/** At once. */
const ENGINES = 6

test('whichever commit fails, the end is the same', { timeout: 600_000 }, async () => {
  const { writes, ...usual } = await runOnce(undefined, undefined)
  expect(usual).toMatchObject({
    status: 'succeeded',
    result: { output: { again: 'failed', each: ['1', '2', '3'], inner: 'second' } },
    repeated: [],
  })
  // Commits that are shared differently are a few more.
  const numbers = Array.from({ length: writes + 5 }, (_, index) => index + 1)
  const all = (Object.keys(faults) as Fault[]).flatMap((fault) => numbers.map((n) => ({ fault, n })))
  const cases = tier === 'full' ? all : all.filter((_, index) => index % 9 === 0)
  const differing: unknown[] = []
  const work = async (): Promise<void> => {
    for (let next = cases.shift(); next !== undefined; next = cases.shift()) {
      const { writes: _, ...end } = await runOnce(next.fault, next.n).catch((error: unknown) => ({ writes: 0, error }))
      if (JSON.stringify(end) !== JSON.stringify(usual)) differing.push({ ...next, end })
    }
  }
  await Promise.all(Array.from({ length: ENGINES }, work))
  expect(differing).toEqual([])
})
