/** Looks at the rows of workflows once nothing runs any more: whether executions, tasks and workflows agree. */
import { findDamage, finalStatuses, withDatabase } from './audit.ts'

export interface ExecutionSeen {
  id: string
  status: string
  action_ref: string
  runner: string
  parent: string | null
  start_timestamp: string
  end_timestamp: string | null
  /** All that it has had, oldest first. */
  statuses: string[]
  context: {
    job?: number
    're-run'?: { ref: string; workflow_execution?: string }
    orquesta?: { task_name: string; item_id?: number }
  }
}

export interface WorkflowSeen {
  id: string
  execution: string
  status: string
  end_timestamp: string | null
  output: string | null
  active: number
  line_records: number
}

export interface ActionSeen {
  execution: string
  workflow: string
  instance: number
  item: number | null
  attempt: number
}

interface TaskSeen {
  workflow: string
  number: number
  status: string
  retries: number
  items: string | null
  start_order: number | null
}

interface LinesSeen {
  execution: string
  seq: number
  data: string
}

export interface Seen {
  executions: Map<string, ExecutionSeen>
  /** By the execution that runs it. */
  workflows: Map<string, WorkflowSeen>
  actions: ActionSeen[]
  tasks: TaskSeen[]
  /** Output of workflows, in order. */
  lines: LinesSeen[]
}

export function readWorkflows(basePath: string): Seen {
  return withDatabase(basePath, (database) => {
    const all = <Row>(query: string): Row[] => database.prepare<[], Row>(query).all()
    const executions = all<Omit<ExecutionSeen, 'context' | 'statuses'> & { log: string; context: string }>(
      'select id, status, action_ref, runner, parent, start_timestamp, end_timestamp, log, context from executions',
    ).map(({ log, context, ...row }): ExecutionSeen => ({
      ...row,
      // Columns that the server writes as JSON of these shapes.
      statuses: (JSON.parse(log) as { status: string }[]).map(({ status }) => status),
      context: JSON.parse(context) as ExecutionSeen['context'],
    }))
    return {
      executions: new Map(executions.map((row) => [row.id, row])),
      workflows: new Map(
        all<WorkflowSeen>(
          'select id, execution, status, end_timestamp, output, active, line_records from workflow_executions',
        ).map((row) => [row.execution, row]),
      ),
      actions: all('select execution, workflow, instance, item, attempt from workflow_actions'),
      lines: all(
        `select execution_id as execution, seq, data from output_records
          where execution_id in (select id from executions where runner in ('orquesta', 'action-chain'))
          order by execution_id, seq`,
      ),
      tasks: all('select workflow, number, status, retries, items, start_order from workflow_tasks'),
    }
  })
}

const isWorkflow = ({ runner }: ExecutionSeen): boolean => runner === 'orquesta' || runner === 'action-chain'

/** The status of a task whose action has ended. */
const endOfTask: Readonly<Record<string, string>> = {
  succeeded: 'succeeded',
  failed: 'failed',
  timeout: 'failed',
  abandoned: 'failed',
  canceled: 'canceled',
}

/** What may follow a status in the life of a workflow. */
const workflowSteps: Readonly<Record<string, RegExp>> = {
  requested: /^(delayed|scheduled|canceling|canceled)$/,
  delayed: /^(requested|canceling|canceled)$/,
  scheduled: /^(running|failed)$/,
  running: /^(pausing|paused|canceling|canceled|succeeded|failed|timeout)$/,
  pausing: /^(paused|resuming|running|canceling|canceled|succeeded|failed|timeout)$/,
  paused: /^(resuming|running|canceling|canceled|succeeded|failed|timeout)$/,
  resuming: /^(pausing|paused|running|canceling|canceled|succeeded|failed|timeout)$/,
  canceling: /^canceled$/,
}

/** What may follow a status in the life of another action. */
const actionSteps: Readonly<Record<string, RegExp>> = {
  requested: /^(delayed|scheduled|canceling|canceled|failed)$/,
  delayed: /^(requested|canceling|canceled)$/,
  scheduled: /^(running|failed|canceling|canceled)$/,
  running: /^(requested|canceling|pending|succeeded|failed|timeout|abandoned)$/,
  pending: /^(succeeded|timeout|canceled)$/,
  canceling: /^canceled$/,
}

/**
 * What is wrong with the workflows of a database once all have ended.
 *
 * @param isSettled whether somebody from outside may have given executions their final status
 */
export function problemsOfWorkflows(basePath: string, isSettled = false): string[] {
  const problems = findDamage(basePath)
  const seen = readWorkflows(basePath)
  const { executions, workflows, actions, tasks } = seen
  const say = (problem: string): void => void problems.push(problem)
  const byId = new Map([...workflows.values()].map((workflow) => [workflow.id, workflow]))
  const nameOf = ({ id, action_ref, statuses }: ExecutionSeen): string => `${action_ref} ${id} (${statuses.join(' ')})`

  for (const execution of executions.values()) {
    const { status, statuses } = execution
    if (!finalStatuses.has(status)) say(`${nameOf(execution)} has not ended`)
    const steps = isWorkflow(execution) ? workflowSteps : actionSteps
    for (const [index, next] of statuses.entries()) {
      const before = statuses[index - 1]
      if (before !== undefined && steps[before]?.test(next) !== true && !isSettled)
        say(`${nameOf(execution)}: ${before} → ${next} is impossible`)
    }
    const workflow = workflows.get(execution.id)
    const isStarted = statuses.includes('running') && isWorkflow(execution)
    const isRepeated = [...executions.values()].some(({ context }) => context['re-run']?.ref === execution.id)
    // A re-run can be refused, and a later one has taken the workflow over.
    const isRerun = execution.context['re-run'] !== undefined
    if (isStarted && workflow === undefined && !isRepeated && !isRerun) say(`${nameOf(execution)} has no workflow`)
    if (workflow !== undefined && workflow.status !== status && !isSettled)
      say(`${nameOf(execution)}: its workflow is ${workflow.status}`)
  }
  for (const workflow of workflows.values()) {
    if (workflow.end_timestamp === null) say(`workflow ${workflow.id} is ${workflow.status}`)
    if (workflow.active !== 0) say(`workflow ${workflow.id} is ${workflow.status} with ${workflow.active} active tasks`)
    if (!executions.has(workflow.execution)) say(`workflow ${workflow.id} has no execution`)
  }

  // A re-run can repeat an action that still runs.
  const isRepeated = new Set([...executions.values()].map(({ context }) => context['re-run']?.workflow_execution))
  const known = new Set<string>()
  const last = new Map<string, ActionSeen>()
  for (const action of actions.sort((a, b) => (a.execution < b.execution ? -1 : 1))) {
    const { execution: id, workflow, instance } = action
    const place = placeOf(action)
    const execution = executions.get(id)
    if (known.has(place) && !isRepeated.has(workflow)) say(`action ${place} was requested twice`)
    known.add(place)
    last.set(`${workflow}/${instance}`, action)
    if (execution === undefined) say(`action ${place} has no execution`)
    else if (execution.parent === null || executions.get(execution.parent)?.runner !== 'orquesta')
      say(`${nameOf(execution)} has the parent ${execution.parent}`)
    if (!byId.has(workflow)) say(`action ${place} has no workflow`)
  }
  for (const problem of problemsOfLines(seen)) say(problem)
  const requests = requestsOf(actions)
  const ofWorkflows = new Set(actions.map(({ execution }) => execution))
  for (const execution of executions.values())
    if (execution.parent !== null && !ofWorkflows.has(execution.id)) say(`${nameOf(execution)} belongs to no task`)
  for (const task of tasks) {
    const action = last.get(`${task.workflow}/${task.number}`)
    const execution = action === undefined ? undefined : executions.get(action.execution)
    if (action === undefined || execution === undefined || task.items !== null) continue
    if (action.attempt !== task.retries || requests.get(placeOf(action)) !== 1) continue
    if (task.status !== endOfTask[execution.status])
      say(`task ${task.workflow}/${task.number} is ${task.status}, and its action ${nameOf(execution)}`)
  }
  return problems
}

const placeOf = ({ workflow, instance, item, attempt }: ActionSeen): string =>
  `${workflow}/${instance}/${item ?? ''}/${attempt}`

/** How often each was requested: more than once when a task starts again while it runs, which ends with the first of them. */
function requestsOf(actions: readonly ActionSeen[]): ReadonlyMap<string, number> {
  const requests = new Map<string, number>()
  for (const action of actions) requests.set(placeOf(action), (requests.get(placeOf(action)) ?? 0) + 1)
  return requests
}

/** What is wrong with the output of workflows: each line belongs to the commit of what it tells. */
function problemsOfLines({ executions, actions, lines, workflows }: Seen): string[] {
  const problems: string[] = []
  const texts = new Map<string, { count: number; text: string }>()
  for (const { execution, seq, data } of lines) {
    const { count, text } = texts.get(execution) ?? { count: 0, text: '' }
    if (seq !== count + 1) problems.push(`output of ${execution}: record ${seq} follows record ${count}`)
    texts.set(execution, { count: seq, text: text + data })
  }
  for (const { id, execution, line_records } of workflows.values()) {
    const { count } = texts.get(execution) ?? { count: 0 }
    if (count !== line_records) problems.push(`workflow ${id} has ${count} records of output, not ${line_records}`)
  }
  const starts = new Map<string, number>()
  const ends = new Map<string, number>()
  const count = (counts: Map<string, number>, id = ''): void => void counts.set(id, (counts.get(id) ?? 0) + 1)
  for (const { text } of texts.values()) {
    for (const [, id] of text.matchAll(/^Task .+: starts .*\((\S+)\)$/gm)) count(starts, id)
    for (const [, id] of text.matchAll(/^Task .+: [a-z]+ after \S+ s \((\S+)\)/gm)) count(ends, id)
  }
  const requests = requestsOf(actions)
  for (const action of actions) {
    const { execution: id, item } = action
    const execution = executions.get(id)
    const parent = executions.get(execution?.parent ?? '')
    const [start = 0, end = 0] = [starts.get(id), ends.get(id)]
    // The output of a workflow is complete when it has ended.
    const until = item === null ? (parent?.end_timestamp ?? '') : ''
    const mustStart = (execution?.start_timestamp ?? until) < until
    const isOnly = requests.get(placeOf(action)) === 1
    const mustEnd = isOnly && parent?.status === 'succeeded' && (execution?.end_timestamp ?? until) < until
    if (start > 1 || (start === 0 && mustStart)) problems.push(`${start} lines tell of the start of ${id}`)
    if (end > 1 || (end === 0 && mustEnd)) problems.push(`${end} lines tell of the end of ${id}`)
  }
  return problems
}
