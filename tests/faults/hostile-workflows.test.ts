/**
 * Workflows that would never end, or grow without end: each ends by a bound of the engine, and its error says which. How long
 * it has held up everybody else is printed, not asserted: time belongs to the machine. Work without a bound does not end
 * within a test.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder } from '../helpers/folders.ts'
import type { LoopCost } from '../helpers/loop-spy.ts'
import { finalStatuses, startServer, type ExecutionAnswer, type TestServer } from '../helpers/server.ts'
import { rounds, tier } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { writeFlowPack, type WorkflowActions } from '../helpers/workflows.ts'

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

/** A task that calls itself again and again, with what it publishes. */
const turning = (vars: string, publish: string, when = 'true', action = ''): string => `
version: 1.0
vars: ${vars}
tasks:
  begin:
    next: [{do: turn}]
  turn:${action}
    next:
      - when: <% ${when} %>
        publish: ${publish}
        do: turn
`

const evaluating = (expression: string): string => `
version: 1.0
tasks:
  a:
    action: core.noop
    next:
      - publish:
          - x: ${JSON.stringify(expression)}
`

const bomb = (levels: number): string =>
  range(levels)
    .map(
      (level) =>
        `  - l${level}: &l${level} [${
          level === 0
            ? 'x'
            : Array(10)
                .fill(`*l${level - 1}`)
                .join(', ')
        }]`,
    )
    .join('\n')

const MAX_TASKS = 3000

const ofTier = <T>(all: Readonly<Record<string, T>>, daily: readonly string[]): [name: string, one: T][] =>
  Object.entries(all).filter(([name]) => tier === 'full' || daily.includes(name))

/** Name → definition, and what the error says. */
const cases: Record<string, { definition: string; says: RegExp; parameters?: object; given?: object }> = {
  idle: {
    definition: turning('[{n: 0}]', '[{n: 0}]').replace(/ *publish.*\n/, ''),
    says: /has started 3000 task instances/,
  },
  counting: { definition: turning('[{n: 0}]', '[{n: <% ctx(n) + 1 %>}]'), says: /3000|max_tasks/ },
  doublingText: {
    definition: turning("[{s: 'xxxxxxxxxxxxxxxx'}]", '[{s: <% ctx(s) + ctx(s) %>}]'),
    says: /too|limit|more than/i,
  },
  doublingList: { definition: turning('[{s: [1]}]', '[{s: <% ctx(s) + ctx(s) %>}]'), says: /too|limit|more than/i },
  doublingObject: {
    definition: turning('[{s: {a: 1}}]', '[{s: {a: <% ctx(s) %>, b: <% ctx(s) %>}}]'),
    says: /too|limit|more than|deep/i,
  },
  deepening: { definition: turning('[{s: 1}]', '[{s: [<% ctx(s) %>]}]'), says: /deep|nest|level/i },
  manyVariables: {
    definition: turning('[{n: 0}]', '[{n: <% ctx(n) + 1 %>}, {s: {"<% str(ctx(n)) %>": <% ctx(n) %>}}]'),
    says: /3000|max_tasks/,
  },
  itself: {
    definition: 'version: 1.0\ntasks:\n  a:\n    action: flow.itself\n',
    says: /may be 50 deep/,
  },
  items: {
    definition: `
version: 1.0
tasks:
  a:
    with: <% range(0, 100001).toList() %>
    action: core.noop
`,
    says: /100,?000/,
  },
  endlessSequence: { definition: evaluating('<% generate(0, true, $ + 1).len() %>'), says: /YaqlEvaluationException/ },
  endlessSum: { definition: evaluating('<% range(0, 100000000000).sum() %>'), says: /YaqlEvaluationException/ },
  endlessProduct: {
    definition: evaluating(
      '<% let(r => range(0, 3000).toList()) -> $r.select(let(a => $) -> $r.select($ * $a).sum()).sum() %>',
    ),
    says: /YaqlEvaluationException/,
  },
  endlessRecursion: {
    definition: evaluating('<% def(f, f($)) -> f(1) %>'),
    says: /YaqlEvaluationException/,
  },
  endlessJinja: {
    definition: evaluating('{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}'),
    says: /JinjaEvaluationException/,
  },
  slowPattern: {
    definition: evaluating(`<% regex_match('${'a'.repeat(5000)}!', '(a+)+$') or true %>`),
    says: /^$/,
  },
  hugeNumber: {
    definition: evaluating('<% range(0, 100000).aggregate($1 * 7, 1) %>'),
    says: /YaqlEvaluationException/,
  },
  hugeText: { definition: evaluating("<% 'x' * 1000000000 %>"), says: /YaqlEvaluationException/ },
  bombs: {
    definition: `version: 1.0\nvars:\n${bomb(9)}\ntasks:\n  a: {action: core.noop}\n`,
    says: /aliases/,
  },
  tooManyTasks: {
    definition: `version: 1.0\ntasks:\n${range(10_001)
      .map((n) => `  t${n}: {action: core.noop}`)
      .join('\n')}\n`,
    says: /10001 tasks and 10000 are the limit/,
  },
  deepDefinition: {
    definition: `version: 1.0\nvars:\n  - x: ${'['.repeat(60)}${']'.repeat(60)}\ntasks:\n  a: {action: core.noop}\n`,
    says: /50/,
  },
  retries: {
    definition: `
version: 1.0
tasks:
  a:
    retry: {count: 1000000000, when: <% true %>}
    action: core.echo
    input: {message: <% ctx().nobody %>}
`,
    says: /nobody/,
  },
}

const folder = makeFolder()
let server: TestServer
const costs: [name: string, cost: LoopCost][] = []

beforeAll(async () => {
  const actions: WorkflowActions = Object.fromEntries(
    Object.entries(cases).map(([name, { definition, parameters = {} }]) => [
      name,
      { definition, parameters: parameters as never },
    ]),
  )
  const replaced = Object.fromEntries(Object.keys(files).map((name) => [name, changes]))
  writeFlowPack(folder.path, {
    ...actions,
    ...replaced,
    fork: fork(tier === 'full' ? 'core.noop' : undefined),
    changes,
    wide,
  })
  writeEntryPoints()
  server = await startServer({
    basePath: folder.path,
    settings: { 'workflow_engine.max_tasks': String(MAX_TASKS) },
    through: ([node = '', ...words]) => [
      node,
      '--import',
      join(import.meta.dirname, '../helpers/loop-spy.ts'),
      ...words,
    ],
  })
  await run('changes')
})
afterAll(async () => {
  await server.stop()
  folder.remove()
  const rows = costs.map(([name, { longestMs, longestDelayMs, totalMs }]) => {
    const numbers = [longestMs, longestDelayMs, totalMs].map((ms) => ms.toFixed(0).padStart(7)).join('')
    return `${numbers}  ${name}\n`
  })
  process.stdout.write(
    `Longest turn (processor), longest delay, processor time in all; milliseconds:\n${rows.join('')}`,
  )
})

const changes = `
version: 1.0
tasks:
  a:
    action: core.local cmd="sleep 0.5"
    next: [{do: b}]
  b:
    action: core.noop
`
const wide = `
version: 1.0
tasks:
  a:
    with: {items: '<% range(0, 60000).toList() %>', concurrency: 2}
    action: core.noop
`
/** One task that starts many others, and one that waits for all of them. */
function fork(action: string | undefined): string {
  const names = range(rounds({ daily: 1000, full: MAX_TASKS - 2 })).map((n) => `t${n}`)
  const tasks = names.map(
    (name) => `  ${name}: {${action === undefined ? '' : `action: ${action}, `}next: [{do: end}]}`,
  )
  return `version: 1.0\ntasks:\n  begin: {next: [{do: [${names.join(', ')}]}]}\n${tasks.join('\n')}\n  end: {join: all}\n`
}

const workflows = join(folder.path, 'packs', 'flow', 'actions', 'workflows')
const outside = join(folder.path, 'outside.yaml')

/** What takes the place of a definition, after its action was registered; and what the error says. */
const files: Record<string, { put: (path: string) => unknown; says: string }> = {
  fifo: { put: (path) => void execFileSync('mkfifo', [path]), says: 'is not a file' },
  folder: { put: (path) => mkdirSync(path), says: 'is not a file' },
  link: { put: (path) => symlinkSync(outside, path), says: 'is not below the folder of the pack' },
  device: { put: (path) => symlinkSync('/dev/zero', path), says: 'is not below the folder of the pack' },
  loop: { put: (path) => symlinkSync(basename(path), path), says: 'cannot be read' },
  missing: { put: () => undefined, says: 'does not exist' },
  binary: { put: (path) => writeFileSync(path, Buffer.from([0xff, 0xfe, 0, 1])), says: 'is not UTF-8 text' },
  large: {
    put: (path) => writeFileSync(path, `# ${'x'.repeat(2 ** 21)}`),
    says: 'has more than 1048576 bytes',
  },
}

/** Of actions that are not registered. */
const entryPoints = ['../../../outside.yaml', outside, '/etc/passwd']

function writeEntryPoints(): void {
  writeFileSync(outside, changes)
  for (const [index, entryPoint] of entryPoints.entries()) {
    const record = { name: `entry${index}`, runner_type: 'orquesta', entry_point: entryPoint, parameters: {} }
    writeFileSync(join(workflows, '..', `entry${index}.json`), JSON.stringify(record))
  }
}

async function begin(name: string): Promise<string> {
  const { status, body, text } = await server.call<ExecutionAnswer>('POST', '/v1/executions', {
    action: `flow.${name}`,
  })
  if (status !== 201) throw new Error(`${name}: ${text}`)
  return body.id
}

const ended = (id: string): Promise<ExecutionAnswer> =>
  waitFor(`${id} to end`, async () => {
    const { body } = await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}`)
    return finalStatuses.includes(body.status) && body
  })

const run = async (name: string): Promise<ExecutionAnswer> => ended(await begin(name))

async function measured<T>(name: string, work: () => Promise<T>): Promise<T> {
  const printed = (): string[] => server.printed().match(/^LOOP .*$/gm) ?? []
  const count = printed().length
  process.kill(server.pid, 'SIGWINCH')
  await waitFor('the spy', () => printed().length > count)
  const value = await work()
  process.kill(server.pid, 'SIGWINCH')
  await waitFor('the cost', () => printed().length > count + 1)
  costs.push([name, JSON.parse(printed().at(-1)?.slice('LOOP '.length) ?? '') as LoopCost])
  return value
}

/** Of the workflow, and of those below it that failed. */
function messagesOf(result: unknown): string {
  const { errors = [] } = (result ?? {}) as { errors?: { message: string; result?: unknown }[] }
  return errors.map((error) => `${error.message}\n${messagesOf(error.result)}`).join('')
}

describe('a workflow without end has one', () => {
  it.each(ofTier(cases, ['idle', 'doublingText', 'itself', 'items', 'endlessSum', 'bombs']))(
    '%s',
    async (name, { says }) => {
      const end = await measured(name, () => run(name))
      const messages = messagesOf(end.result)
      expect([end.status, messages]).toEqual([
        says.source === '^$' ? 'succeeded' : 'failed',
        expect.stringMatching(says) as string,
      ])
      expect(messages.length).toBeLessThan(20_000)
    },
  )
})

it('a fork of many tasks', async () => {
  expect((await measured('fork', () => run('fork'))).status).toBe('succeeded')
})

it('60,000 items are canceled before they have run', async () => {
  const end = await measured('items that are canceled', async () => {
    const id = await begin('wide')
    await waitFor('some items', async () => {
      const children = await server.call<ExecutionAnswer[]>('GET', `/v1/executions?parent=${id}`)
      const { body } = await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}`)
      if (finalStatuses.includes(body.status)) throw new Error(JSON.stringify(body.result))
      return children.body.length > 3
    })
    await server.call('DELETE', `/v1/executions/${id}`)
    return ended(id)
  })
  expect(end.status).toBe('canceled')
})

describe('a definition that is no file of the pack', () => {
  it.each(ofTier(files, ['fifo', 'link']))('%s', async (name, { put, says }) => {
    const path = join(workflows, `${name}.yaml`)
    rmSync(path)
    put(path)
    const { status, result } = await run(name)
    expect([status, messagesOf(result)]).toEqual([
      'failed',
      `Failed to load workflow definition because the file workflows/${name}.yaml ${says}.\n`,
    ])
  })

  it.each([...entryPoints.entries()])('%i: the entry point %s is not registered', async (index) => {
    const { status, text } = await server.call('POST', '/v1/executions', { action: `flow.entry${index}` })
    expect([status, text]).toEqual([400, expect.stringContaining('ACTION_UNKNOWN')])
  })
})

it('a definition that changes while it runs: the run keeps the one it has started with', async () => {
  const id = await begin('changes')
  await waitFor('its task', async () => {
    const { body } = await server.call<ExecutionAnswer[]>('GET', `/v1/executions?parent=${id}`)
    return body[0]?.status === 'running'
  })
  writeFileSync(join(folder.path, 'packs/flow/actions/workflows/changes.yaml'), 'tasks: {z: {action: core.noop}}')
  expect((await ended(id)).status).toBe('succeeded')
  const { body } = await server.call<ExecutionAnswer[]>('GET', `/v1/executions?parent=${id}&sort_asc=true`)
  const names = body.map(({ context }) => (context['orquesta'] as { task_name: string }).task_name)
  expect(names).toEqual(['a', 'b'])
})

it('answers afterwards', async () => {
  expect((await server.call('GET', '/v1/executions?limit=1')).status).toBe(200)
})
