/** A mix of workflows whose actions note that they run, and of what users do with them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { finalStatuses, readRows, withDatabase } from '../helpers/audit.ts'
import type { Random } from '../helpers/random.ts'
import type { ExecutionAnswer, TestServer } from '../helpers/server.ts'
import { problemsOfWorkflows, readWorkflows, type ExecutionSeen, type Seen } from '../helpers/workflow-audit.ts'
import type { WorkflowActions } from '../helpers/flow-pack.ts'

/** An action that a kill has interrupted starts again. */
const again = 'retry: {when: <% failed() %>, count: 1000}'

/** @param runsFile each action adds a line: its execution id */
function definitions(runsFile: string): WorkflowActions {
  const note = `echo $SVC_ACTION_EXECUTION_ID >> ${runsFile}`
  const act = (text: string, after = 'sleep 0.02'): string => `
    action: core.local
    input: {cmd: "${note}; ${after}; echo ${text}"}`
  const fork = `
version: 1.0
tasks:
  begin: ${act('begin')}
    ${again}
    next: [{when: <% succeeded() %>, do: 'a, b, c'}]
  a: ${act('a')}
    ${again}
    next: [{when: <% succeeded() %>, publish: [{a: <% result().stdout %>}], do: done}]
  b: ${act('b', 'sleep 0.1')}
    ${again}
    next: [{when: <% succeeded() %>, publish: [{b: <% result().stdout %>}], do: done}]
  c:
    action: core.noop
    ${again}
    next: [{when: <% succeeded() %>, publish: [{c: c}], do: done}]
  done:
    join: all${act('<% ctx(a) %><% ctx(b) %><% ctx(c) %>')}
    ${again}
    next: [{when: <% succeeded() %>, publish: [{text: <% result().stdout %>}]}]
output:
  - text: <% ctx(text) %>
`
  const nested = `
version: 1.0
tasks:
  one:
    action: flow.fork
    next: [{when: <% succeeded() %>, publish: [{one: <% result().output.text %>}], do: last}]
  two:
    action: flow.fork
    next: [{when: <% succeeded() %>, publish: [{two: <% result().output.text %>}], do: last}]
  last:
    join: all${act('last')}
    ${again}
output:
  - text: <% ctx(one) %>+<% ctx(two) %>
`
  return {
    fork,
    nested,
    deep: `
version: 1.0
tasks:
  only:
    action: flow.nested
    next: [{when: <% succeeded() %>, publish: [{text: <% result().output.text %>}]}]
output:
  - text: <% ctx(text) %>
`,
    items: `
version: 1.0
tasks:
  each:
    with: {items: "<% list(1, 2, 3, 4, 5) %>", concurrency: 2}${act('<% item() %>')}
    next:
      - when: <% succeeded() %>
        publish: [{text: "<% result().select($.stdout).join('') %>"}]
        do: good
      - when: <% failed() %>
        publish: [{text: broken}]
        do: bad
  good: ${act('good')}
    ${again}
  bad: ${act('bad')}
    ${again}
output:
  - text: <% ctx(text) %>
`,
    sheaf: `
version: 1.0
tasks:
  each:
    with: {items: "<% list(1, 2, 3) %>"}${act('<% item() %>')}
    ${again}
    next: [{when: <% succeeded() %>, publish: [{text: "<% result().select($.stdout).join('') %>"}]}]
output:
  - text: <% ctx(text) %>
`,
    choice: `
version: 1.0
tasks:
  risky: ${act('risky', 'sleep 0.2')}
    next:
      - {when: <% succeeded() %>, publish: [{text: good}], do: good}
      - {when: <% failed() %>, publish: [{text: mended}], do: mend}
  good: ${act('good')}
    ${again}
  mend: ${act('mend')}
    ${again}
output:
  - text: <% ctx(text) %>
`,
    plain: `
version: 1.0
tasks:
  first: ${act('first', 'sleep 0.1')}
    next: [{when: <% succeeded() %>, do: second}]
  second: ${act('second', 'sleep 0.1')}
    next: [{when: <% succeeded() %>, do: third}]
  third: ${act('third')}
    next: [{when: <% succeeded() %>, publish: [{text: <% result().stdout %>}]}]
output:
  - text: <% ctx(text) %>
`,
    loop: `
version: 1.0
vars: [{n: 0}]
tasks:
  begin:
    next: [{do: turn}]
  turn: ${act('turn', 'true')}
    ${again}
    next: [{when: <% succeeded() %>, publish: [{n: <% ctx(n) + 1 %>}], do: decide}]
  decide:
    next: [{when: <% ctx(n) < 4 %>, do: turn}]
output:
  - text: <% ctx(n) %>
`,
    flaky: `
version: 1.0
input: [job]
tasks:
  shaky:
    action: core.local
    input: {cmd: "${note}; echo x >> ${runsFile}.<% ctx(job) %>; [ $(wc -l < ${runsFile}.<% ctx(job) %>) -gt 2 ]"}
    retry: {when: <% failed() %>, count: 1000}
output:
  - text: <% task_status(shaky) %>
`,
    late: `
version: 1.0
tasks:
  wait: ${act('late')}
    delay: 1
    ${again}
    next: [{when: <% succeeded() %>, publish: [{text: <% result().stdout %>}]}]
output:
  - text: <% ctx(text) %>
`,
    ask: `
version: 1.0
tasks:
  ask:
    action: core.ask
    ${again}
    next: [{when: <% succeeded() %>, publish: [{text: <% result().response.continue %>}], do: after}]
  beside: ${act('beside', 'sleep 0.1')}
    ${again}
    next: [{when: <% succeeded() %>, do: after}]
  after:
    join: all${act('after')}
    ${again}
output:
  - text: <% ctx(text) %>
`,
  }
}

type Kind = 'fork' | 'nested' | 'deep' | 'items' | 'sheaf' | 'choice' | 'plain' | 'loop' | 'flaky' | 'late' | 'ask'
const kinds = [
  ...(['fork', 'nested', 'deep', 'items', 'sheaf', 'choice', 'plain', 'loop', 'flaky', 'late', 'ask'] as const),
  ...(['fork', 'items', 'plain', 'nested'] as const),
] as unknown as [Kind, ...Kind[]]

/** One workflow that was asked for, whatever was answered. */
interface Job {
  n: number
  kind: Kind
  /** Set by the answer 201. */
  id: string | undefined
  isCancelAsked: boolean
}

/** Workflows that are open at once, at most. */
const MAX_OPEN = 14

export interface WorkflowLoad {
  readonly jobs: Job[]
  readonly actions: WorkflowActions
  /** Does one thing that users do. Rejects when the server dies before it answers. */
  act(server: TestServer): Promise<void>
  /** Does what is left for people to do, until all has ended. @returns whether it has */
  conclude(server: TestServer): Promise<boolean>
  /** What is wrong once all has ended. */
  problems(): string[]
}

/** @param folder of the server */
export function createWorkflowLoad(random: Random, folder: string): WorkflowLoad {
  const jobs: Job[] = []
  const runsFile = join(folder, 'workflow-runs')
  writeFileSync(runsFile, '')
  /** Executions by job, the last re-run first. */
  const runsOfJob = (): Map<number, { id: string; status: string }> => {
    const found = new Map<number, { id: string; status: string }>()
    const rows = readRows(folder, 'parent is null')
    for (const { id, status, job } of rows.values()) if (job !== undefined) found.set(job, { id, status })
    const reruns = withDatabase(folder, (database) =>
      database
        .prepare<[], { id: string; status: string; ref: string }>(
          `select id, status, context ->> '$."re-run".ref' as ref from executions
             where parent is null and ref is not null order by id`,
        )
        .all(),
    )
    for (const { id, status, ref } of reruns)
      for (const [job, run] of found) if (run.id === ref) found.set(job, { id, status })
    return found
  }

  async function request(server: TestServer, method: string, path: string, body?: unknown): Promise<ExecutionAnswer> {
    const answer = await server.call<ExecutionAnswer>(method, path, body)
    if (answer.status >= 500) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
    return answer.body
  }

  async function begin(server: TestServer): Promise<void> {
    const job: Job = { n: jobs.length + 1, kind: random.pick(kinds), id: undefined, isCancelAsked: false }
    jobs.push(job)
    const answer = await request(server, 'POST', '/v1/executions', {
      action: `flow.${job.kind}`,
      parameters: job.kind === 'flaky' ? { job: job.n } : {},
      context: { job: job.n },
    })
    job.id = answer.id
  }

  const answerInquiry = (server: TestServer, id: string): Promise<unknown> =>
    request(server, 'PUT', `/v1/inquiries/${id}`, { id, response: { continue: true } })

  /** The task that a failed run of `plain` goes on from. */
  /** Of two at once, the second fails or repeats what the first has done. */
  const rerunning = new Set<string>()

  async function rerun(server: TestServer, id: string): Promise<void> {
    if (rerunning.has(id)) return
    rerunning.add(id)
    try {
      await requestRerun(server, id)
    } finally {
      rerunning.delete(id)
    }
  }

  async function requestRerun(server: TestServer, id: string): Promise<void> {
    const failed = withDatabase(folder, (database) =>
      database
        .prepare<[string], { task: string }>(
          `select context ->> '$.orquesta.task_name' as task from executions where parent = ? and status = 'abandoned'`,
        )
        .all(id),
    )
    const tasks = failed.map(({ task }) => task)
    if (tasks.length > 0) await request(server, 'POST', `/v1/executions/${id}/re_run`, { tasks })
  }

  const pendingInquiries = (): string[] => [...readRows(folder, `status = 'pending'`).keys()]

  return {
    jobs,
    actions: Object.fromEntries(
      Object.entries(definitions(runsFile)).map(([name, definition]) => [
        name,
        name === 'flaky' && typeof definition === 'string'
          ? { definition, parameters: { job: { type: 'integer' } } }
          : definition,
      ]),
    ),

    async act(server) {
      const runs = runsOfJob()
      const open = jobs.filter(({ n }) => !finalStatuses.has(runs.get(n)?.status ?? 'unknown'))
      const choice = random.below(12)
      const job = open[random.below(Math.max(1, open.length))]
      const run = job === undefined ? undefined : runs.get(job.n)
      if (job === undefined || run === undefined || choice < 5) {
        if (open.length < MAX_OPEN) await begin(server)
        return
      }
      const put = (status: string): Promise<unknown> => request(server, 'PUT', `/v1/executions/${run.id}`, { status })
      if (choice < 7) await put('pausing')
      else if (choice < 9) await put('resuming')
      else if (choice === 9) {
        if (!random.once(3)) return
        job.isCancelAsked = true
        const children = [...readRows(folder, `parent = '${run.id}'`).keys()]
        const id = random.once(2) ? children[random.below(Math.max(1, children.length))] : run.id
        await request(server, 'DELETE', `/v1/executions/${id ?? run.id}`)
      } else if (choice === 10) {
        const inquiries = pendingInquiries()
        const inquiry = inquiries[random.below(Math.max(1, inquiries.length))]
        if (inquiry !== undefined) await answerInquiry(server, inquiry)
      } else {
        const failed = jobs.find(({ n, kind }) => kind === 'plain' && runs.get(n)?.status === 'failed')
        if (failed !== undefined) await rerun(server, runs.get(failed.n)?.id ?? '')
      }
    },

    async conclude(server) {
      const runs = runsOfJob()
      for (const id of pendingInquiries()) await answerInquiry(server, id)
      let isOver = true
      for (const { n, kind, isCancelAsked } of jobs) {
        const run = runs.get(n)
        if (run === undefined) continue
        if (run.status === 'paused') await request(server, 'PUT', `/v1/executions/${run.id}`, { status: 'resuming' })
        if (run.status === 'failed' && kind === 'plain' && !isCancelAsked) await rerun(server, run.id)
        else if (finalStatuses.has(run.status)) continue
        isOver = false
      }
      return (
        isOver &&
        readRows(folder, `status not in ('succeeded', 'failed', 'timeout', 'canceled', 'abandoned')`).size === 0
      )
    },

    problems() {
      const problems = problemsOfWorkflows(folder)
      const seen = readWorkflows(folder)
      const counts = new Map<string, number>()
      for (const line of readFileSync(runsFile, 'utf8').split('\n'))
        if (line !== '') counts.set(line, (counts.get(line) ?? 0) + 1)
      for (const [id, count] of counts) {
        const execution = seen.executions.get(id)
        if (count > 1) problems.push(`the action ${id} ran ${count} times`)
        if (execution === undefined) problems.push(`the action ${id} ran and is not stored`)
        else if (!execution.statuses.includes('running')) problems.push(`the action ${id} ran, and has not started`)
      }
      for (const { id, action_ref, status, statuses } of seen.executions.values()) {
        if (action_ref !== 'core.local') continue
        if (status === 'succeeded' && !counts.has(id))
          problems.push(`${id} (${statuses.join(' ')}) succeeded and never ran`)
      }
      const runs = runsOfJob()
      for (const job of jobs) {
        const run = runs.get(job.n)
        if (run === undefined) {
          if (job.id !== undefined) problems.push(`job ${job.n} was answered with 201 and is not stored`)
          continue
        }
        const found = problemsOfJob(job, run.id, seen)
        problems.push(...found.map((problem) => `job ${job.n} (${job.kind}, ${run.id}): ${problem}`))
      }
      for (const { n, kind } of jobs)
        if (kind === 'flaky' && runs.get(n)?.status === 'succeeded' && !existsSync(`${runsFile}.${n}`))
          problems.push(`job ${n} never ran`)
      return problems
    },
  }
}

const forkOnce = { begin: 1, a: 1, b: 1, c: 1, done: 1 }
const forkText = 'abc'

/** Task → how often it must have succeeded, and the output; of those that nobody has canceled. */
function expectedOf(kind: Kind, children: readonly ExecutionSeen[]): { tasks: Record<string, number>; text: unknown } {
  const isAbandoned = (task: string): boolean =>
    children.some(({ status, context }) => status === 'abandoned' && context.orquesta?.task_name === task)
  switch (kind) {
    case 'fork':
      return { tasks: forkOnce, text: forkText }
    case 'nested':
      return { tasks: { one: 1, two: 1, last: 1 }, text: `${forkText}+${forkText}` }
    case 'deep':
      return { tasks: { only: 1 }, text: `${forkText}+${forkText}` }
    case 'items': {
      const ended = children.filter(({ context }) => context.orquesta?.task_name === 'each')
      const each = ended.filter(({ status }) => status === 'succeeded').length
      return isAbandoned('each')
        ? { tasks: { ...(each === 0 ? {} : { each }), bad: 1 }, text: 'broken' }
        : { tasks: { each: 5, good: 1 }, text: '12345' }
    }
    case 'sheaf': {
      // Whoever is repeated is repeated with all of its items.
      const each = children.filter(({ status }) => status === 'succeeded').length
      return { tasks: { each }, text: '123' }
    }
    case 'choice':
      return isAbandoned('risky')
        ? { tasks: { mend: 1 }, text: 'mended' }
        : { tasks: { risky: 1, good: 1 }, text: 'good' }
    case 'plain':
      return { tasks: { first: 1, second: 1, third: 1 }, text: 'third' }
    case 'loop':
      return { tasks: { turn: 4 }, text: 4 }
    case 'flaky':
      return { tasks: { shaky: 1 }, text: 'succeeded' }
    case 'late':
      return { tasks: { wait: 1 }, text: 'late' }
    case 'ask':
      return { tasks: { ask: 1, beside: 1, after: 1 }, text: true }
  }
}

function problemsOfJob(job: Job, id: string, seen: Seen): string[] {
  const workflow = seen.workflows.get(id)
  const execution = seen.executions.get(id)
  if (execution?.status === 'canceled' && job.isCancelAsked) return []
  if (workflow === undefined || execution === undefined) return ['has no workflow']
  const children = seen.actions
    .filter((action) => action.workflow === workflow.id)
    .flatMap((action) => seen.executions.get(action.execution) ?? [])
  if (execution.status === 'failed' && job.isCancelAsked && job.kind === 'plain') return []
  const { tasks, text } = expectedOf(job.kind, children)
  const succeeded: Record<string, number> = {}
  for (const { status, context } of children) {
    const task = context.orquesta?.task_name ?? ''
    if (status === 'succeeded') succeeded[task] = (succeeded[task] ?? 0) + 1
  }
  const problems: string[] = []
  if (execution.status !== 'succeeded') problems.push(`is ${execution.statuses.join(' ')}`)
  const output = workflow.output === null ? null : (JSON.parse(workflow.output) as { text: unknown })
  if (output?.text !== text) problems.push(`its output is ${workflow.output} instead of ${JSON.stringify(text)}`)
  const names = new Set([...Object.keys(tasks), ...Object.keys(succeeded)])
  for (const name of names)
    if (succeeded[name] !== tasks[name])
      problems.push(`the task ${name} has succeeded ${succeeded[name] ?? 0} times instead of ${tasks[name] ?? 0}`)
  const allowed = new Set(['succeeded', 'abandoned', ...(job.kind === 'flaky' ? ['failed'] : [])])
  for (const child of children)
    if (!allowed.has(child.status)) problems.push(`the task ${child.context.orquesta?.task_name} is ${child.status}`)
  return problems
}
