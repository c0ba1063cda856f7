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

export interface TraceRecord {
  id: string
  uid: string
  trace_tag: string
  start_timestamp: string
  action_executions: TraceComponent[]
  rules: TraceComponent[]
  trigger_instances: TraceComponent[]
}
