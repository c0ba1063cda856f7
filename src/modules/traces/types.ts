/** Records of contract 07. */
import { record, Type, type Static } from '../../lib/schema/index.ts'

const TraceMemberKind = Type.Enum(['execution', 'rule', 'trigger_instance'])
export type TraceMemberKind = Static<typeof TraceMemberKind>

const CauseType = Type.Enum(['action_execution', 'rule', 'trigger_instance'])

export interface CausedBy {
  type: Static<typeof CauseType>
  id: string
}

/** Why an execution or a trigger instance came to be; decides which trace it belongs to. */
export type Cause =
  /** From outside: an id must exist, a tag joins or starts a trace, neither starts one with `default_tag`. */
  | { kind: 'request'; trace_id?: string; trace_tag?: string; default_tag: string; caused_by?: CausedBy | undefined }
  /** By something that has a trace already. */
  | { kind: 'inherited'; trace_id: string; caused_by: CausedBy | undefined }

export interface TraceMember {
  kind: TraceMemberKind
  object_id: string
  ref: string
}

const component = {
  object_id: Type.String({ description: 'Id of the execution, rule or trigger instance.' }),
  ref: Type.String({ description: 'Reference of the action, the rule or the trigger.' }),
  updated_at: Type.String({ description: 'When it was added.' }),
  caused_by: Type.Object(
    { type: Type.Optional(CauseType), id: Type.Optional(Type.String()) },
    {
      description:
        'Empty for a request from outside. The id of a rule is followed by `:` and the id of the trigger instance.',
    },
  ),
}

const componentExample = {
  object_id: '67a1f0c2e4b0a1d2c3e4f506',
  ref: 'core.local',
  updated_at: '2026-01-31T12:00:00.000000Z',
  caused_by: {},
}

export const TraceComponent = record('TraceComponent', Type.Object(component), { example: componentExample })
export type TraceComponent = Static<typeof TraceComponent>

const member = {
  seq: Type.Integer({
    description: 'Place among the components of all traces; later components have greater numbers.',
  }),
  kind: TraceMemberKind,
  ...component,
}
const memberExample = { seq: 1, kind: 'execution', ...componentExample } as const

/** One of a list of components of every kind. */
export const TraceMemberRecord = record('TraceMember', Type.Object(member), { example: memberExample })
export type TraceMemberRecord = Static<typeof TraceMemberRecord>

const components = { ...Type.Array(TraceComponent), description: 'In the order in which they were added.' }

const trace = Type.Object({
  id: Type.String(),
  uid: Type.String(),
  trace_tag: Type.String(),
  start_timestamp: Type.String(),
  action_executions: components,
  rules: components,
  trigger_instances: components,
})
export type TraceRecord = Static<typeof trace>

/** Attributes of a trace that are returned only to who names them. */
const summary = Type.Object({
  origin: {
    ...Type.Nullable(Type.Object(member)),
    description: 'The component that was added first, if `include_attributes` names it; null when there is none.',
  },
  component_count: Type.Integer({
    description: 'Number of components, if `include_attributes` names it; counted up to 1,000.',
  }),
})
export type TraceSummary = Static<typeof summary>

const importedComponents = Type.Optional(Type.Array(TraceComponent))

/** Body of `POST /traces/import`. */
export const TraceImport = record(
  'TraceImport',
  Type.Object(
    {
      traces: Type.Array(
        Type.Object({
          id: Type.String({ pattern: '^[0-9a-f]{24}$', description: 'It stays.' }),
          trace_tag: Type.String(),
          start_timestamp: Type.String({ description: 'ISO 8601.' }),
          action_executions: importedComponents,
          rules: importedComponents,
          trigger_instances: importedComponents,
        }),
        { maxItems: 100 },
      ),
      dry_run: Type.Optional(Type.Boolean()),
    },
    { additionalProperties: false },
  ),
  {
    example: {
      traces: [
        {
          id: '67a1f0c2e4b0a1d2c3e4f507',
          trace_tag: 'deploy-42',
          start_timestamp: '2026-01-31T12:00:00.000000Z',
          action_executions: [componentExample],
        },
      ],
    },
  },
)
export type TraceImport = Static<typeof TraceImport>

const traceExample = {
  id: '67a1f0c2e4b0a1d2c3e4f507',
  uid: 'trace:67a1f0c2e4b0a1d2c3e4f507',
  trace_tag: 'deploy-42',
  start_timestamp: '2026-01-31T12:00:00.000000Z',
  action_executions: [componentExample],
  rules: [],
  trigger_instances: [],
}

/** A trace in an answer: `include_attributes` and `exclude_attributes` decide which attributes it has. */
export const Trace = record(
  'Trace',
  Type.Object({ ...Type.Partial(trace).properties, ...Type.Partial(summary).properties, id: Type.String() }),
  { example: traceExample },
)
