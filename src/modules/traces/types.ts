/** Contract 07. */
export type TraceMemberKind = 'execution' | 'rule' | 'trigger_instance'

export interface CausedBy {
  type: 'action_execution' | 'rule' | 'trigger_instance'
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

export interface TraceComponent {
  object_id: string
  ref: string
  updated_at: string
  caused_by: CausedBy | Record<string, never>
}

/** One of a list of components of every kind. */
export interface TraceMemberRecord extends TraceComponent {
  /** Its place among the components of all traces; later ones have a greater number. */
  seq: number
  kind: TraceMemberKind
}

export interface TraceRecord {
  id: string
  uid: string
  trace_tag: string
  start_timestamp: string
  action_executions: TraceComponent[]
  rules: TraceComponent[]
  trigger_instances: TraceComponent[]
}

/** Attributes of a trace that are there for who asks for them by name. */
export interface TraceSummary {
  /** The component that was added first; null when there is none any more. */
  origin: TraceMemberRecord | null
  /** Components, of whatever kind; at most 1,000 are counted. */
  component_count: number
}
