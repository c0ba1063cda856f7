/** Which attributes of executions a reader wants: in answers and on the event stream alike (contract 00, 0.11). */
import { queryInvalid } from '../../../core/errors.ts'
import {
  attributeQuery,
  parseAttributes,
  type AttributeOptions,
  type Projection,
  type QueryParameter,
  type QueryValue,
} from '../../../http/index.ts'
import { writeJson } from '../../../lib/json/index.ts'
/** Those that an include list can name; inner paths below them are allowed. */
export const executionAttributes: readonly string[] = [
  'id',
  'status',
  'start_timestamp',
  'end_timestamp',
  'elapsed_seconds',
  'action',
  'runner',
  'liveaction',
  'parameters',
  'result',
  'result_size',
  'context',
  'log',
  'web_url',
  'parent',
  'children',
  'delay',
  'attempt',
  'retry_of',
  'rule',
  'trigger',
  'trigger_type',
  'trigger_instance',
  'notify',
  'workflow_execution',
  'task_execution',
]
const excludable = ['result', 'trigger_instance', 'status']

/** Declarations for a route's `query`. */
export const parametersLimitQuery = {
  max_parameters_size: {
    type: 'integer',
    description: 'Leaves out parameters of more bytes; `parameters_size` has their size.',
  },
} as const satisfies Record<string, QueryParameter>

/** Declarations for the `query` of an endpoint with one execution, or with all of some. */
export const executionAttributeQuery = { ...attributeQuery, ...parametersLimitQuery } as const

export const attributeOptions: AttributeOptions = { known: executionAttributes, excludable, always: ['id'] }

/** @throws QUERY_INVALID */
export function wantedAttributes(query: Readonly<Record<string, QueryValue>>): Projection {
  return withParametersLimit(query, parseAttributes(query, attributeOptions))
}

/** Applies `max_parameters_size`. @throws QUERY_INVALID */
export function withParametersLimit(query: Readonly<Record<string, QueryValue>>, wanted: Projection): Projection {
  const maxSize = query['max_parameters_size']
  if (typeof maxSize !== 'number') return wanted
  if (maxSize < 0) throw queryInvalid('max_parameters_size must be a positive number')
  return { needed: wanted.needed, apply: (record) => withoutLargeParameters(wanted.apply(record), maxSize) }
}

/** The live action inside has them a second time. */
function withoutLargeParameters(record: Record<string, unknown>, maxSize: number): Record<string, unknown> {
  const { parameters, liveaction, ...rest } = record
  const inner = hasParameters(liveaction) ? liveaction.parameters : undefined
  const size = sizeOf(parameters ?? inner)
  if (size <= maxSize) return record
  if (!hasParameters(liveaction)) {
    return { ...rest, ...(liveaction === undefined ? {} : { liveaction }), parameters_size: size }
  }
  const { parameters: _, ...kept } = liveaction
  return { ...rest, liveaction: kept, parameters_size: size }
}

function hasParameters(value: unknown): value is { parameters: unknown } {
  return typeof value === 'object' && value !== null && 'parameters' in value
}

/** Bytes of its JSON text. */
function sizeOf(value: unknown): number {
  return value === undefined ? 0 : Buffer.byteLength(writeJson(value))
}
