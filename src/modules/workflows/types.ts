/** Wire records of workflows (contract 08), and what their commands print. */
import { record, Type, type Static } from '../../lib/schema/index.ts'
import type { ErrorEntry } from './conductor/index.ts'

const taskStatuses = [
  'running',
  'retrying',
  'pending',
  'pausing',
  'paused',
  'canceling',
  'succeeded',
  'failed',
  'canceled',
] as const

const workflowStatuses = [
  'requested',
  'running',
  'pausing',
  'paused',
  'resuming',
  'canceling',
  'succeeded',
  'failed',
  'timeout',
  'canceled',
] as const

const exampleTask = {
  position: 0,
  id: '5e0d8a7c1b2f4e6d9a8b7c6d',
  name: 'prepare',
  action: 'core.noop',
  route: 0,
  pass: 1,
  status: 'succeeded' as const,
  attempt: 1,
  max_attempts: 1,
  items: null,
  previous: [],
  previous_total: 0,
  transitions: [{ id: 'build__t0', task: 'build' }],
  executions: ['67a1f0c2e4b0a1d2c3e4f511'],
  executions_total: 1,
  waits_for: null,
  start_timestamp: '2026-01-31T12:00:00.020000Z',
  end_timestamp: '2026-01-31T12:00:00.270000Z',
  elapsed_seconds: 0.25,
}

/** One mistake in a workflow definition. */
export const InspectionEntry = record(
  'InspectionEntry',
  Type.Object({
    type: Type.Enum(['content', 'context', 'expression', 'semantic', 'syntax', 'warning']),
    message: Type.String(),
    spec_path: Type.Nullable(Type.String({ description: 'Where the mistake is; null: in the definition as a whole.' })),
    schema_path: Type.Nullable(
      Type.String({ description: 'The rule for that place, as a path in the schema of definitions.' }),
    ),
    language: Type.Optional(
      Type.Nullable(
        Type.Enum(['yaql', 'jinja'], { description: 'Of the expression; null: one text has both languages.' }),
      ),
    ),
    expression: Type.Optional(Type.String({ description: 'The text of the expression with the mistake.' })),
    hint: Type.Optional(Type.String({ description: 'What may have been meant. Only with the query `hints`.' })),
  }),
  {
    example: {
      type: 'semantic',
      message: 'The task "finsh" is not defined.',
      spec_path: 'tasks.prepare.next[0].do',
      schema_path: 'properties.tasks.patternProperties.^\\w+$.properties.next.items.properties.do',
    },
  },
)
export type InspectionEntry = Static<typeof InspectionEntry>

const Timestamp = Type.String({ description: 'ISO 8601 UTC with microseconds.' })
const Count = Type.Integer({ minimum: 0 })

/** One pass of a task on a route. */
export const WorkflowTaskRecord = record(
  'WorkflowTask',
  Type.Object({
    position: Type.Integer({ description: 'Place in the order in which tasks have started.' }),
    id: Type.String({ description: 'Id of the task execution: that of the latest attempt.' }),
    name: Type.String(),
    action: Type.Nullable(
      Type.String({ description: 'As the definition has it: a reference, or an expression; null: it runs no action.' }),
    ),
    route: Type.Integer(),
    pass: Type.Integer({ description: '1 for the first time that the task runs on its route, 2 for the second.' }),
    status: Type.Enum(taskStatuses),
    attempt: Type.Integer({ description: '1, and one more with each retry.' }),
    max_attempts: Type.Integer({ description: 'Attempts that the retry of the task allows.' }),
    items: Type.Nullable(
      Type.Object({
        total: Count,
        concurrency: Type.Nullable(Type.Integer({ description: 'Items that run at once; null: all.' })),
        not_started: Count,
        running: Count,
        waiting: Type.Integer({ description: 'For a person, or for a paused workflow.' }),
        succeeded: Count,
        failed: Count,
        canceled: Count,
      }),
    ),
    previous: Type.Array(Type.Object({ task: Type.String(), position: Count, transition: Type.String() }), {
      description: 'Tasks that have led to this one; the first ones.',
    }),
    previous_total: Count,
    transitions: Type.Nullable(
      Type.Array(Type.Object({ id: Type.String(), task: Type.String() }), {
        description: 'Transitions that were taken, and where they lead; null: none was evaluated.',
      }),
    ),
    executions: Type.Array(Type.String(), {
      description: 'Ids of the executions of the latest attempt, in the order of the items; the first ones.',
    }),
    executions_total: Count,
    waits_for: Type.Nullable(
      Type.Object({
        kind: Type.Enum(['delay', 'inquiry', 'resume']),
        execution: Type.String({ description: 'Id.' }),
        until: Type.Optional(Timestamp),
      }),
    ),
    start_timestamp: Type.Nullable(Timestamp),
    end_timestamp: Type.Nullable(Timestamp),
    elapsed_seconds: Type.Nullable(Type.Number({ description: 'Of the latest attempt; null: it has not ended.' })),
  }),
  { example: exampleTask },
)
export type WorkflowTaskRecord = Static<typeof WorkflowTaskRecord>

/** A workflow as it runs, or as it ran. */
export const WorkflowRun = record(
  'WorkflowRun',
  Type.Object({
    id: Type.String({ description: 'Id of the workflow execution. A re-run from tasks keeps it.' }),
    execution: Type.String({ description: 'Id of the execution that runs it, or ran it last.' }),
    root: Type.String({ description: 'Id of the workflow execution at the top; its own id, if that is this one.' }),
    runner: Type.String(),
    status: Type.Enum(workflowStatuses),
    start_timestamp: Timestamp,
    end_timestamp: Type.Nullable(Timestamp),
    elapsed_seconds: Type.Nullable(Type.Number()),
    counts: Type.Object(
      {
        total: Count,
        running: Count,
        retrying: Type.Integer({ description: 'Wait for their next attempt to start.' }),
        waiting: Type.Integer({ description: 'For a person, or for a paused workflow.' }),
        succeeded: Count,
        failed: Count,
        canceled: Count,
      },
      { description: 'Tasks that have started, by status.' },
    ),
    tasks: Type.Array(WorkflowTaskRecord, { description: 'A page, in the order in which the tasks have started.' }),
    next: Type.Nullable(
      Type.Integer({ description: '`after` of the next page; null: no further task has started yet.' }),
    ),
  }),
  {
    description: 'Tasks include the commands `continue`, `noop` and `fail`, which run no action.',
    example: {
      id: '67a1f0c2e4b0a1d2c3e4f510',
      execution: '67a1f0c2e4b0a1d2c3e4f506',
      root: '67a1f0c2e4b0a1d2c3e4f510',
      runner: 'orquesta',
      status: 'running',
      start_timestamp: '2026-01-31T12:00:00.020000Z',
      end_timestamp: null,
      elapsed_seconds: null,
      counts: { total: 3, running: 1, retrying: 0, waiting: 0, succeeded: 2, failed: 0, canceled: 0 },
      tasks: [exampleTask],
      next: 0,
    },
  },
)
export type WorkflowRun = Static<typeof WorkflowRun>

/** One call of a function in an expression. */
const ExpressionReading = record(
  'ExpressionReading',
  Type.Object({
    name: Type.String({ description: 'The function, such as ctx, result or task_status.' }),
    args: Type.Array(Type.Unknown()),
    value: Type.Unknown(),
  }),
  { example: { name: 'ctx', args: ['tries'], value: 3 } },
)

/** An entry of `next` of a task that has ended. */
export const WorkflowTransition = record(
  'WorkflowTransition',
  Type.Object({
    when: Type.Unknown({ description: 'The condition; null: it has none.' }),
    value: Type.Unknown({ description: 'The value of the condition; null also if it has none or fails.' }),
    is_taken: Type.Boolean(),
    do: Type.Array(Type.String(), {
      description: 'Names of tasks and engine commands; empty: an action chain ends here.',
    }),
    published: Type.FreeForm({ description: 'Variables that its targets get.' }),
    reads: Type.Array(ExpressionReading, { description: 'What the condition has read.' }),
    errors: Type.Array(Type.String(), { description: 'Why the condition or a variable could not be evaluated.' }),
    has_changed: Type.Boolean({
      description:
        'The condition decides otherwise now than at the end of the task, because what it reads has changed since then.',
    }),
  }),
  {
    example: {
      when: '<% ctx(tries) < 3 %>',
      value: false,
      is_taken: false,
      do: ['build'],
      published: {},
      reads: [{ name: 'ctx', args: ['tries'], value: 3 }],
      errors: [],
      has_changed: false,
    },
  },
)
export type WorkflowTransition = Static<typeof WorkflowTransition>

/** The arrivals at a join. */
export const WorkflowJoin = record(
  'WorkflowJoin',
  Type.Object({
    need: Type.Integer({ description: 'How many tasks must lead to the join before it starts.' }),
    arrived: Type.Array(Type.String(), { description: 'Names of the tasks that have led to it.' }),
    missing: Type.Array(Type.String(), { description: 'Names of the other tasks that can lead to it.' }),
  }),
  { example: { need: 2, arrived: ['say'], missing: ['log'] } },
)
export type WorkflowJoin = Static<typeof WorkflowJoin>

/** One thing that a workflow waits for. */
export const WorkflowWait = record(
  'WorkflowWait',
  Type.Object({
    kind: Type.Enum(['action', 'answer', 'arrivals', 'child', 'delay', 'items', 'resume', 'retry', 'start'], {
      description:
        'action: an action runs. answer: an inquiry waits for its answer. arrivals: a join lacks arrivals. child: a child workflow is paused. delay: an action starts later. items, retry, start: further items, the next attempt, or the task start when the workflow goes on. resume: a user has paused the workflow.',
    }),
    task: Type.Nullable(Type.String()),
    route: Type.Nullable(Type.Integer()),
    item: Type.Nullable(Type.Integer({ description: 'Position in the list of items, from 0.' })),
    execution: Type.Nullable(Type.String({ description: 'Id of the execution of the action.' })),
    until: Type.Nullable(Type.String({ description: 'When the delay ends, ISO 8601.' })),
    join: Type.Nullable(WorkflowJoin),
  }),
  {
    example: {
      kind: 'arrivals',
      task: 'finish',
      route: 0,
      item: null,
      execution: null,
      until: null,
      join: { need: 2, arrived: ['say'], missing: ['log'] },
    },
  },
)
export type WorkflowWait = Static<typeof WorkflowWait>

/** An error of a workflow, and what its expression saw. */
export const WorkflowFailure = record(
  'WorkflowFailure',
  Type.Object({
    message: Type.String(),
    task: Type.Nullable(Type.String({ description: 'null: input, vars or output of the workflow.' })),
    route: Type.Nullable(Type.Integer()),
    expression: Type.Unknown({
      description: 'The expression, or the value that contains it; null: the error is not one of an expression.',
    }),
    variables: Type.Nullable(Type.FreeForm({ description: 'The variables that the expression saw.' })),
    reads: Type.Array(ExpressionReading),
  }),
  {
    example: {
      message:
        'YaqlEvaluationException: Unable to evaluate expression \'<% ctx(nmae) %>\'. VariableUndefinedError: The variable "nmae" is undefined.',
      task: 'say',
      route: 0,
      expression: { message: '<% ctx(nmae) %>' },
      variables: { name: 'Ana' },
      reads: [],
    },
  },
)
export type WorkflowFailure = Static<typeof WorkflowFailure>

const ExplainedTask = record(
  'ExplainedTask',
  Type.Object({
    task: Type.String(),
    route: Type.Integer(),
    status: Type.String(),
    join: Type.Nullable(WorkflowJoin),
    transitions: Type.Nullable(
      Type.Array(WorkflowTransition, {
        description: 'null: none was evaluated, because the action could not be started.',
      }),
    ),
    unsuccessful: Type.Array(
      Type.Object({
        execution: Type.String({ description: 'Id of the execution.' }),
        item: Type.Nullable(
          Type.Integer({ description: 'Position in the list of items, from 0; null: the task has none.' }),
        ),
        status: Type.String({ description: 'How the action has ended, such as timeout or abandoned.' }),
      }),
      {
        description:
          'Why a task has not succeeded: actions of its last attempt that have not. The first 10; empty if the task has succeeded.',
      },
    ),
  }),
  {
    example: {
      task: 'build',
      route: 0,
      status: 'succeeded',
      join: null,
      transitions: [
        {
          when: '<% succeeded() %>',
          value: true,
          is_taken: true,
          do: ['deploy'],
          published: { version: '1.4' },
          reads: [{ name: 'succeeded', args: [], value: true }],
          errors: [],
          has_changed: false,
        },
      ],
      unsuccessful: [],
    },
  },
)

/** Why a workflow went the way it did, and what it waits for. */
export const WorkflowExplanation = record(
  'WorkflowExplanation',
  Type.Object({
    status: Type.String({ description: 'Status of the workflow.' }),
    message: Type.String({ description: 'A summary for people.' }),
    tasks: Type.Array(ExplainedTask, {
      description: 'Passes of tasks that have ended, in the order of their starts; the latest ones if there are many.',
    }),
    tasks_left_out: Type.Integer({ description: 'Earlier passes that are not in the list.' }),
    failures: Type.Array(WorkflowFailure),
    failures_left_out: Type.Integer(),
    waits_for: Type.Array(WorkflowWait, { description: 'Empty when the workflow has ended.' }),
    waits_left_out: Type.Integer(),
  }),
  {
    example: {
      status: 'running',
      message: 'The workflow waits for 1 action.',
      tasks: [],
      tasks_left_out: 0,
      failures: [],
      failures_left_out: 0,
      waits_for: [
        {
          kind: 'action',
          task: 'deploy',
          route: 0,
          item: null,
          execution: '6a0000000000000000000001',
          until: null,
          join: null,
        },
      ],
      waits_left_out: 0,
    },
  },
)
export type WorkflowExplanation = Static<typeof WorkflowExplanation>

/** A task in the graph of a definition. Values may be expressions. */
const GraphTask = record(
  'WorkflowGraphTask',
  Type.Object({
    name: Type.String(),
    action: Type.Nullable(Type.String({ description: 'Reference of the action; null: the task runs none.' })),
    join: Type.Unknown({ description: 'all, or a number of tasks; null: the task is no join.' }),
    join_need: Type.Nullable(Type.Integer({ description: 'How many tasks must lead to the join before it starts.' })),
    items: Type.Nullable(Type.String({ description: 'The list, as the definition has it; null: one action.' })),
    concurrency: Type.Unknown({ description: 'Items at a time; null: all.' }),
    retry: Type.Nullable(
      Type.Object({
        count: Type.Unknown(),
        delay: Type.Unknown({ description: 'Seconds; null: none.' }),
        when: Type.Unknown({ description: 'The condition; null: the task failed.' }),
      }),
    ),
    delay: Type.Unknown({ description: 'Seconds before it starts; null: none.' }),
    timeout: Type.Unknown({ description: 'Seconds that each of its actions may take; null: no limit.' }),
    is_split: Type.Boolean({ description: 'Whether each arrival runs on a route of its own.' }),
    inbound: Type.Array(Type.String(), { description: 'Names of the tasks that lead here.' }),
    transitions: Type.Array(
      Type.Object({
        when: Type.Unknown({ description: 'The condition; null: always.' }),
        publish: Type.Array(Type.String(), { description: 'Names of variables.' }),
        do: Type.Array(Type.String(), { description: 'Names of tasks and engine commands.' }),
      }),
    ),
  }),
  {
    example: {
      name: 'build',
      action: 'ci.build',
      join: null,
      join_need: null,
      items: null,
      concurrency: null,
      retry: { count: 2, delay: 30, when: null },
      delay: null,
      timeout: 600,
      is_split: false,
      inbound: [],
      transitions: [{ when: '<% succeeded() %>', publish: ['image'], do: ['deploy'] }],
    },
  },
)
export type WorkflowGraphTask = Static<typeof GraphTask>

/** The graph of a workflow definition. */
export const WorkflowGraph = record(
  'WorkflowGraph',
  Type.Object({
    runner: Type.String({ description: 'orquesta, or action-chain.' }),
    start: Type.Array(Type.String(), { description: 'Names of the tasks that start first.' }),
    timeout: Type.Unknown({ description: 'Seconds that the workflow may take; null: no limit.' }),
    tasks: Type.Array(GraphTask, { description: 'In the order of the definition.' }),
  }),
  {
    example: {
      runner: 'orquesta',
      start: ['build'],
      timeout: null,
      tasks: [
        {
          name: 'build',
          action: 'ci.build',
          join: null,
          join_need: null,
          items: null,
          concurrency: null,
          retry: null,
          delay: null,
          timeout: null,
          is_split: false,
          inbound: [],
          transitions: [],
        },
      ],
    },
  },
)
export type WorkflowGraph = Static<typeof WorkflowGraph>

/** The run of an action, or one that was refused. */
export interface RehearsedAction {
  /** Position in the list of items; null: the task has no items */
  readonly item: number | null
  /** 1, then one more with each retry. */
  readonly attempt: number
  readonly action: string
  readonly input: Readonly<Record<string, unknown>> | null
  /** Seconds that it waits before. */
  readonly delay: number
  /** Seconds that it may take; null: no limit */
  readonly timeout: number | null
  /** Seconds since the start of the workflow, the delay included. */
  readonly started_at: number
  /** null: it has not ended */
  ended_at: number | null
  status: string
  result: unknown
  /** Whether the file of mocks says how it ends. */
  readonly is_mocked: boolean
}

/** One pass of a task on a route. */
export interface RehearsedTask {
  readonly task: string
  readonly route: number
  status: string
  join: WorkflowJoin | null
  /** Length of the list; null: the task has no items */
  items: number | null
  readonly actions: RehearsedAction[]
  transitions: WorkflowTransition[]
  /** Errors of the task that are not those of a transition. */
  readonly failures: WorkflowFailure[]
}

/** What a rehearsal gives, as `svc workflow test -j` prints it. */
export interface Rehearsal {
  readonly status: string
  readonly output: Readonly<Record<string, unknown>> | null
  readonly errors: readonly ErrorEntry[]
  /** In the order of their starts. Engine commands are not among them. */
  readonly tasks: readonly RehearsedTask[]
  /** The time limit of the workflow, in seconds, if that has ended it; null: it has not */
  readonly timed_out_after: number | null
  /** Errors of input, vars and output. */
  readonly failures: readonly WorkflowFailure[]
  readonly waits_for: readonly WorkflowWait[]
  /** Tasks that ran an action without a mock. */
  readonly without_mock: readonly string[]
  /** Tasks with a mock that ran no action. */
  readonly unused_mocks: readonly string[]
  /** Why the rehearsal has stopped before the workflow could end; null: it has not */
  readonly problem: string | null
}

/** `path` names the place, such as `output.line` or `tasks[2].status`. */
export interface Difference {
  readonly path: string
  /** undefined: nothing */
  readonly expected: unknown
  readonly actual: unknown
}

/**
 * The answer to a rehearsal. `problem`: a file cannot be used. `mistakes`: the workflow would not start. `warnings`: what is
 * likely to be a mistake.
 */
export type RehearsalAnswer =
  | { readonly problem: string }
  | { readonly mistakes: readonly InspectionEntry[] }
  | {
      readonly rehearsal: Rehearsal
      readonly differences: readonly Difference[]
      readonly warnings: readonly InspectionEntry[]
    }
