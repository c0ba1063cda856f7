/** Contract 09, 9.4 and 9.5 for workflows: the tree, tasks while svc waits, output of tasks, pause, resume, re-run, cancel. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli, startCli, waitForOutput, type CliExit } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { waitFor } from '../helpers/wait.ts'
import { createWorkflowApp, type WorkflowActions, type WorkflowApp } from '../helpers/workflows.ts'

const actions: WorkflowActions = {
  deploy: `
version: 1.0
tasks:
  build:
    action: core.local cmd="echo built"
    next: [{do: check}]
  check:
    action: core.local cmd="echo checked; exit 1"
    retry: {count: 1}
output:
  - code: <% task(check).result.return_code %>
`,
  outer: `
version: 1.0
tasks:
  inner:
    action: flow.deploy
`,
  items: `
version: 1.0
tasks:
  each:
    with: <% range(60) %>
    action: core.noop
`,
  flaky: {
    parameters: { file: { type: 'string', required: true } },
    definition: `
input: [file]
tasks:
  each:
    with: word in <% [a, b, c] %>
    action: core.local cmd="[ <% item(word) %> != b ] || test -e <% ctx(file) %>"
    next: [{when: <% succeeded() %>, do: other}]
  other:
    with: <% [1, 2] %>
    action: core.noop
`,
  },
  asks: `
version: 1.0
tasks:
  ask:
    action: core.ask
`,
  steps: {
    runner: 'action-chain',
    definition: `
chain:
  - {name: a, ref: core.echo, parameters: {message: hi}, publish: {said: "{{ a.stdout }}"}, on-success: b}
  - {name: b, ref: core.echo, parameters: {message: "{{ text }}"}, publish: {all: 1}}
`,
    parameters: { text: { type: 'string', default: 'two' } },
  },
  stumbles: {
    runner: 'action-chain',
    definition: `
chain:
  - {name: a, ref: core.echo, parameters: {message: hi}, publish: {said: "{{ a.stdout }}"}, on-success: b}
  - {name: b, ref: core.echo, parameters: {message: "{{ missing }}"}}
`,
  },
}

const folder = makeFolder()
let app: WorkflowApp
beforeAll(async () => {
  app = await createWorkflowApp(actions)
})
afterAll(async () => {
  await app.stop()
  folder.remove()
})

const env = (): Record<string, string> => ({ HOME: folder.path, SVC_API_URL: `${app.urls.api}/v1` })
const svc = (...args: string[]): Promise<CliExit> => runCli(args, env())
const messagesOf = (id: string, task: string, status: string): string[] => [
  `Child execution (task=${task}) ${id} has started.`,
  `Child execution (task=${task}) ${id} has finished (status=${status}).`,
]
/** Cells of the rows of a table. */
const rowsOf = (text: string): string[][] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
const idOf = (text: string): string => /^id: (\w+)$/m.exec(text)?.[1] ?? ''

describe('09.4 run of a workflow', () => {
  it('tells of its tasks while it waits, then shows its outcome and its tree', async () => {
    const { code, stdout, stderr } = await svc('run', 'flow.outer')
    expect(code).toBe(1)
    expect(stderr).toMatch(/^Task inner: (started \(\w{24}\)|failed after [\d.]+ s \(\w{24}\))$/m)
    expect(stdout).toMatch(/^action\.ref: flow\.outer$/m)
    expect(stdout).toMatch(/^errors:$/m)
    const [head, ...rows] = rowsOf(stdout)
    expect(head).toEqual(['id', 'status', 'task', 'action', 'start_timestamp'])
    expect(rows.map(([, status, task, action]) => [status?.split(' ')[0], task, action])).toEqual([
      ['failed', 'inner', 'flow.deploy'],
      ['succeeded', 'build', 'core.local'],
      ['failed', 'check', 'core.local'],
      ['failed', 'check attempt 2', 'core.local'],
    ])
    const ids = stdout.split('\n').filter((line) => line.startsWith('| '))
    expect(ids[1]).toMatch(/^\| \+ \w{24}/)
    expect(ids[2]).toMatch(/^\| {3}\w{24}/)
  })

  it('prints the record alone with --raw, --key and -j', async () => {
    const { stdout, stderr } = await svc('run', 'flow.deploy', '--raw')
    expect([rowsOf(stdout), stderr.includes('Task ')]).toEqual([[], false])
    expect(stdout).toMatch(/^result:$/m)
    expect((await svc('run', '-k', 'output', 'flow.deploy')).stdout).toContain('"code": 1')
    const { stdout: json } = await svc('run', '-j', 'flow.deploy')
    expect(JSON.parse(json)).toMatchObject({
      status: 'failed',
      context: { workflow_execution: expect.any(String) as unknown },
    })
  })

  it('shows some of many children, and how to list the others', async () => {
    const { stdout } = await svc('run', 'flow.items')
    expect(stdout).toMatch(/^tasks: 1 succeeded$/m)
    expect(rowsOf(stdout)).toHaveLength(51)
    expect(rowsOf(stdout)[4]?.[2]).toBe('each item 3')
    const id = idOf(stdout)
    expect(stdout).toContain(`… and 10 more. To list the newest, execute:\n svc execution list --parent ${id}\n`)
    const list = await svc('execution', 'list', '--parent', id, '-n', '100')
    expect(rowsOf(list.stdout)).toHaveLength(61)
  })

  it('shows what a chain has published, and its error once', async () => {
    const { stdout } = await svc('run', 'flow.steps')
    expect(stdout).toMatch(/^published:\n {2}said: hi\n {2}all: 1\n/m)
    const failed = await svc('run', 'flow.stumbles')
    expect(failed.stdout).toMatch(/^error: /m)
    expect(failed.stdout).not.toMatch(/^traceback: /m)
    expect(failed.stdout).toMatch(/^published:\n {2}said: hi\n/m)
  })

  it('says who has canceled a workflow', async () => {
    const { id } = await app.begin('asks')
    await app.reaches(id, 'paused')
    await svc('execution', 'cancel', id)
    expect((await svc('execution', 'get', id)).stdout).toMatch(/^cancelled_by: svc$/m)
  })

  it('ends with the command that answers an inquiry', async () => {
    const { code, stdout } = await svc('run', 'flow.asks')
    expect(code).toBe(0)
    const [, [inquiry = ''] = []] = rowsOf(stdout)
    expect(stdout).toContain(`Task ask waits for an answer. To answer, execute:\n svc inquiry respond ${inquiry}\n`)
    const id = idOf(stdout)
    const answer = await svc('inquiry', 'respond', inquiry, '-r', '{"continue": true}')
    expect(answer.code).toBe(0)
    expect((await app.ended(id)).status).toBe('succeeded')
    expect((await svc('execution', 'get', id)).stdout).not.toContain('waits for an answer')
  })
})

describe('09.5 tail of a workflow', () => {
  it('prints the output of its tasks, and of nested workflows with --nested', async () => {
    const { id } = await app.run('outer')
    const [inner] = await app.children(id)
    const own = await svc('execution', 'tail', inner?.id ?? '')
    expect(own.stdout).toContain('Child execution (task=build) ')
    expect(own.stdout).toContain('built\n')
    expect(own.stdout).toContain('Child execution (task=check attempt 2) ')
    const outer = await svc('execution', 'tail', id)
    expect(outer.stdout).toContain(`Child execution (task=inner) ${inner?.id ?? ''} has finished (status=failed).`)
    expect(outer.stdout).not.toContain('built')
    expect((await svc('execution', 'tail', id, '--nested')).stdout).toContain('built\n')
  })

  it('prints what a workflow says of itself, and each start and end once', async () => {
    const { id } = await app.run('outer')
    const [inner] = await app.children(id)
    const innerId = inner?.id ?? ''
    const ids = (await app.children(innerId)).map((child) => child.id)
    const seen = (text: string): string[] =>
      ids.flatMap((child) => text.split('\n').filter((line) => line.includes(child)))
    const [, check = '', again = ''] = ids
    const { stdout } = await svc('execution', 'tail', innerId)
    expect(seen(stdout)).toEqual([
      ...ids.slice(0, 1).flatMap((child) => messagesOf(child, 'build', 'succeeded')),
      expect.stringMatching(`^Task check: failed after .* \\(${check}\\): exit code 1; attempt 2 of 2 follows$`),
      ...messagesOf(check, 'check', 'failed'),
      expect.stringMatching(`^Task check attempt 2: failed after .* \\(${again}\\): exit code 1$`),
      ...messagesOf(again, 'check attempt 2', 'failed'),
    ])
    expect(stdout).toMatch(/^Workflow flow\.deploy: failed after \S+ s: task check failed$/m)
    const nested = (await svc('execution', 'tail', id, '--nested')).stdout
    expect(nested).toMatch(/^Workflow flow\.deploy: failed after /m)
    expect(nested).toMatch(/^Workflow flow\.outer: failed after /m)
    expect(seen(nested).toSorted()).toEqual(seen(stdout).toSorted())
    // Those of a nested workflow are not followed: its own lines tell of them.
    const outer = (await svc('execution', 'tail', id)).stdout
    expect(outer).toContain(`Task build: starts core.local (${ids[0] ?? ''})\n`)
    expect(outer).not.toContain(`Task inner: starts `)
    const record = (await svc('execution', 'tail', innerId, '-j')).stdout
    expect(record).toContain(`Task build: starts core.local (${ids[0] ?? ''})\\n`)
  })

  it('follows a workflow that runs', async () => {
    const { id } = await app.begin('asks')
    const cli = startCli(['execution', 'tail', id], env())
    await waitForOutput(cli, 'the task', () => cli.stdout().includes('Execution'))
    await app.reaches(id, 'paused')
    expect((await svc('execution', 'cancel', id)).code).toBe(0)
    const { code, stdout } = await cli.exit
    expect([code, stdout.endsWith(`Execution ${id} has completed (status=canceled).\n`)]).toEqual([0, true])
  })
})

describe('09.5 pause, resume, re-run, cancel', () => {
  it('change workflows, and say why they do not change others', async () => {
    const plain = await svc('run', '-j', 'core.local', 'true')
    const { id: ended } = JSON.parse(plain.stdout) as { id: string }
    for (const command of ['pause', 'resume']) {
      const refused = await svc('execution', command, ended)
      expect([refused.code, refused.stdout]).toEqual([1, expect.stringContaining('completed state')])
    }
    const { stdout } = await svc('run', '--async', '-j', 'core.local', 'sleep 60')
    const { id: running } = JSON.parse(stdout) as { id: string }
    await app.reaches(running, 'running')
    expect((await svc('execution', 'pause', running)).stdout).toContain('not supported by the "local-shell-cmd" runner')
    await svc('execution', 'cancel', running)
  })

  it('re-run from a task', async () => {
    const { id } = await app.run('deploy')
    const { code, stdout } = await svc('execution', 're-run', id, '--tasks', 'check')
    expect(code).toBe(1)
    expect(rowsOf(stdout).map(([, , task]) => task)).toEqual(['task', 'check', 'check attempt 2'])
    const kept = await svc('execution', 're-run', id, '--tasks', 'check', '--no-reset', 'build')
    expect(kept.stdout).toContain('--no-reset names build, which --tasks does not name.')
    const foreign = await svc('run', '-j', 'core.local', 'true')
    const { id: plain } = JSON.parse(foreign.stdout) as { id: string }
    const refused = await svc('execution', 're-run', plain, '--tasks', 'a')
    expect([refused.code, refused.stdout]).toEqual([
      1,
      expect.stringContaining('only supported for Orquesta workflows'),
    ])
  })

  it('re-run all items of a task, or with --no-reset those that did not succeed', async () => {
    const file = join(folder.path, 'go')
    const { id } = await app.run('flaky', { file })
    writeFileSync(file, '')
    const tasksOf = (stdout: string): string[] =>
      rowsOf(stdout)
        .slice(1)
        .map(([, , task]) => task ?? '')
    const failed = await svc('execution', 're-run', id, '--tasks', 'each', '--no-reset', 'each')
    expect([failed.code, tasksOf(failed.stdout)]).toEqual([0, ['each item 1', 'other item 0', 'other item 1']])
    const [again = ''] = /[0-9a-f]{24}/.exec(failed.stdout) ?? []
    const all = await svc('execution', 're-run', again, '--tasks', 'each')
    expect([all.code, tasksOf(all.stdout).filter((task) => task.startsWith('each'))]).toEqual([
      0,
      ['each item 0', 'each item 1', 'each item 2'],
    ])
    // One task is repeated as a whole, the other one keeps what it has.
    const [last = ''] = /[0-9a-f]{24}/.exec(all.stdout) ?? []
    const both = await svc('execution', 're-run', last, '--tasks', 'each', 'other', '--no-reset', 'other')
    expect([both.code, tasksOf(both.stdout).length]).toEqual([0, 5])
  })

  it('cancel a workflow and what it has started', async () => {
    const { id } = await app.begin('asks')
    await app.reaches(id, 'paused')
    const { code, stdout } = await svc('execution', 'cancel', id)
    expect([code, stdout]).toEqual([0, `action execution with id ${id} canceled.\n`])
    await app.ended(id)
    await waitFor('the inquiry', async () => (await app.children(id))[0]?.status === 'canceled')
  })
})
