/** Wire records of workflows (contract 08). */
import { record, Type, type Static } from '../../lib/schema/index.ts'

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
