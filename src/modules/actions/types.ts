/** Wire records of contract 02. They keep the wire's names from row to JSON. */
import type { ParameterSchema } from '../../lib/schema/index.ts'
import type { RunnerTypeDefinition } from '../../runners/index.ts'

export interface ActionRecord {
  id: string
  uid: string
  ref: string
  name: string
  pack: string
  description: string
  enabled: boolean
  runner_type: string
  /** Relative to the pack's `actions/`; empty for command runners. */
  entry_point: string
  parameters: Record<string, ParameterSchema>
  output_schema: Record<string, unknown>
  tags: { name: string; value: string }[]
  notify: Record<string, unknown>
  /** Relative to the pack, e.g. `actions/local.yaml`. */
  metadata_file?: string
}

/** What an author writes: the record without what is derived. */
export type ActionDefinition = Omit<ActionRecord, 'id' | 'uid' | 'ref'>

export interface RunnerTypeRecord extends RunnerTypeDefinition {
  id: string
  uid: string
}
