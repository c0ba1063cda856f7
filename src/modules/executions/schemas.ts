/** Response schemas of the execution endpoints, for the OpenAPI document (contract 03, 3.2). */
import type { JsonSchema } from '../../lib/schema/index.ts'
import { executionStatuses } from './types.ts'

const timestamp: JsonSchema = { type: 'string', description: 'ISO 8601 UTC with microseconds.' }
const object: JsonSchema = { type: 'object' }
const string: JsonSchema = { type: 'string' }

function named(more: Record<string, JsonSchema>): JsonSchema {
  return {
    type: 'object',
    description: 'As it was when the execution began; only `name` when that is all that is known.',
    properties: { id: string, uid: string, ref: string, pack: string, name: string, ...more },
  }
}

const properties = {
  id: { type: 'string', pattern: '^[0-9a-f]{24}$' },
  status: { type: 'string', enum: [...executionStatuses] },
  start_timestamp: timestamp,
  end_timestamp: timestamp,
  elapsed_seconds: { type: 'number' },
  action: object,
  runner: object,
  liveaction: {
    type: 'object',
    required: ['id', 'action', 'action_is_workflow', 'parameters', 'callback', 'runner_info'],
    properties: {
      id: { type: 'string' },
      action: { type: 'string' },
      action_is_workflow: { type: 'boolean' },
      parameters: object,
      callback: object,
      runner_info: { type: 'object', properties: { hostname: { type: 'string' }, pid: { type: 'integer' } } },
      notify: object,
    },
  },
  parameters: object,
  result: { description: 'Depends on the runner.' },
  result_size: { type: 'integer', description: 'Bytes of the stored result.' },
  context: object,
  log: {
    type: 'array',
    items: {
      type: 'object',
      required: ['status', 'timestamp'],
      properties: { status: { type: 'string', enum: [...executionStatuses] }, timestamp },
    },
  },
  web_url: { type: 'string' },
  parent: { type: 'string' },
  children: { type: 'array', items: { type: 'string' } },
  delay: { type: 'integer' },
  rule: named({ description: string }),
  trigger: named({ type: string }),
  trigger_type: named({ description: string }),
  trigger_instance: { type: 'object', properties: { id: string, trigger: string, occurrence_time: timestamp } },
} satisfies Record<string, JsonSchema>

export const executionSchema: JsonSchema = {
  title: 'Execution',
  type: 'object',
  description: 'Attributes that are empty are left out.',
  required: ['id', 'status', 'start_timestamp', 'action', 'runner', 'liveaction', 'context', 'log', 'web_url'],
  properties,
}

/** With `include_attributes` nothing but the id is certain. */
export const partialExecutionSchema: JsonSchema = {
  ...executionSchema,
  title: 'PartialExecution',
  required: ['id'],
  properties: {
    ...properties,
    parameters_size: { type: 'integer', description: 'In the place of `parameters`: see `max_parameters_size`.' },
  },
}

export const executionListSchema: JsonSchema = { type: 'array', items: partialExecutionSchema }

export const refusalOrExecutionSchema: JsonSchema = {
  oneOf: [
    executionSchema,
    {
      title: 'Refusal',
      type: 'object',
      required: ['faultstring'],
      properties: { faultstring: { type: 'string' } },
    },
  ],
}

export const updateRequestSchema: JsonSchema = {
  type: 'object',
  required: ['status'],
  additionalProperties: false,
  properties: {
    status: { type: 'string', enum: [...executionStatuses] },
    result: { type: 'object' },
  },
}

const values: JsonSchema = { type: 'array', items: { type: ['string', 'null'] } }

export const filterViewsSchema: JsonSchema = {
  title: 'ExecutionFilters',
  type: 'object',
  properties: {
    action: values,
    status: values,
    rule: values,
    runner: values,
    trigger: values,
    trigger_type: values,
    user: values,
  },
}

const number: JsonSchema = { type: 'integer' }

export const outputLinesSchema: JsonSchema = {
  title: 'OutputLines',
  type: 'object',
  required: [
    'total',
    'is_last_line_open',
    'bytes',
    'is_complete',
    'is_stored',
    'is_beginning_removed',
    'last_seq',
    'lines',
  ],
  properties: {
    total: { type: 'integer', description: 'Lines so far, a last one without a line end included.' },
    is_last_line_open: {
      type: 'boolean',
      description: 'The last line has no line end: what is written next belongs to it.',
    },
    bytes: {
      type: 'object',
      description: 'Bytes so far of each type, whichever was asked for.',
      required: ['stdout', 'stderr', 'other'],
      properties: { stdout: number, stderr: number, other: number },
    },
    is_complete: { type: 'boolean', description: 'Nothing is written any more.' },
    is_stored: { type: 'boolean', description: 'Whether output is stored (`actionrunner.stream_output`).' },
    is_beginning_removed: {
      type: 'boolean',
      description: 'The beginning is not stored any more: line 1 is the first of what is left.',
    },
    last_seq: {
      type: 'integer',
      description:
        'The stream of the output goes on behind these lines after `Last-Event-ID: <execution id>/<last_seq>`.',
    },
    lines: {
      type: 'array',
      description: 'Consecutive; fewer than asked for when they are long.',
      items: {
        type: 'object',
        required: ['number', 'timestamp', 'parts'],
        properties: {
          number: { type: 'integer', description: 'From 1.' },
          timestamp,
          parts: {
            type: 'array',
            description: 'The text without the line end, in the order in which it was written.',
            items: {
              type: 'object',
              required: ['output_type', 'data'],
              properties: {
                output_type: { type: 'string', enum: ['stdout', 'stderr', 'other'] },
                data: string,
                host: { type: 'string', description: 'The host it comes from, where an execution runs on others.' },
              },
            },
          },
          offset: {
            type: 'integer',
            description: 'Where the text begins in the line, in bytes, unless at its beginning.',
          },
          next_offset: {
            type: 'integer',
            description: 'Where a line goes on that is too long for one answer, in bytes.',
          },
          length: { type: 'integer', description: 'Bytes of the whole line, when it is not here as a whole.' },
        },
      },
    },
  },
}

export const outputMatchesSchema: JsonSchema = {
  title: 'OutputMatches',
  type: 'object',
  required: ['total', 'matches', 'next', 'is_at_end', 'is_complete'],
  properties: {
    total: { type: 'integer', description: 'Lines so far, a last one without a line end included.' },
    matches: {
      type: 'array',
      description: 'In the order of the lines, at most one of each; without what terminals take as commands.',
      items: {
        type: 'object',
        required: ['line', 'before', 'match', 'after'],
        properties: {
          line: { type: 'integer', description: 'Number of the line.' },
          before: { type: 'string', description: 'What stands before the first place in the line, or a part of that.' },
          match: string,
          after: { type: 'string', description: 'What stands behind it, or a part of that.' },
        },
      },
    },
    next: {
      type: 'object',
      description: 'The query parameters that go on where this ends.',
      required: ['from', 'offset'],
      properties: { from: number, offset: number },
    },
    is_at_end: { type: 'boolean', description: 'Everything has been looked through that there is so far.' },
    is_complete: { type: 'boolean', description: 'Nothing is written any more.' },
  },
}
