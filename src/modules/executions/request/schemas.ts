/** Bodies of requests for executions (contract 03, 3.1). */
import type { JsonSchema } from '../../../lib/schema/index.ts'

/** Body of `POST /executions`; what else it holds is ignored, because clients of several versions send it. */
export interface ExecutionRequest {
  action: string
  parameters?: Record<string, unknown>
  user?: string | null
  context?: Record<string, unknown>
  notify?: Record<string, unknown>
  /** Milliseconds. */
  delay?: number | null
  callback?: Record<string, unknown>
}

const MAX_DELAY_MS = 31_536_000_000
export const MAX_TAG_LENGTH = 1024

const parameters: JsonSchema = {
  type: 'object',
  description: 'Values of the parameters of the action.',
  propertyNames: { pattern: '^\\w+$' },
}
const user: JsonSchema = {
  type: ['string', 'null'],
  minLength: 1,
  description: 'Acting user; null or absent: the caller.',
}
const delay: JsonSchema = {
  type: ['integer', 'null'],
  minimum: 0,
  maximum: MAX_DELAY_MS,
  description: 'Milliseconds to wait before the execution is scheduled.',
}

const notifySection: JsonSchema = {
  type: 'object',
  properties: {
    message: { type: 'string' },
    data: { type: 'object' },
    routes: { type: 'array', items: { type: 'string' } },
    channels: { type: 'array', items: { type: 'string' } },
  },
  additionalProperties: false,
}

export const executionRequestSchema: JsonSchema = {
  type: 'object',
  required: ['action'],
  properties: {
    action: { type: 'string', description: 'Reference of the action, `<pack>.<name>`.' },
    parameters,
    user,
    context: {
      type: 'object',
      description: 'Merged into the context; `trace_context` joins (`id_`) or starts (`trace_tag`) a trace.',
      properties: {
        trace_context: {
          type: 'object',
          properties: { id_: { type: 'string' }, trace_tag: { type: 'string', maxLength: MAX_TAG_LENGTH } },
          additionalProperties: false,
        },
        parent: {
          type: 'object',
          properties: { execution_id: { type: 'string' }, user: { type: 'string' } },
        },
      },
    },
    notify: {
      type: 'object',
      properties: { 'on-complete': notifySection, 'on-success': notifySection, 'on-failure': notifySection },
      additionalProperties: false,
    },
    delay,
    callback: { type: 'object' },
  },
}

/** Body of `POST /executions/<id>/re_run`. */
export interface RerunRequest {
  parameters?: Record<string, unknown>
  /** Where the given parameters replace the original ones: names of those that stay as they were, secrets included. */
  keep?: string[]
  user?: string | null
  delay?: number | null
  tasks?: string[]
  reset?: string[]
}

export const rerunRequestSchema: JsonSchema = {
  type: 'object',
  properties: {
    parameters,
    keep: {
      type: 'array',
      items: { type: 'string' },
      maxItems: 1000,
      description: 'With `no_merge`: names of original parameters that stay as they were, secrets included.',
    },
    user,
    delay,
    tasks: { type: 'array', items: { type: 'string' }, description: 'Workflows only: names of tasks to run again.' },
    reset: {
      type: 'array',
      items: { type: 'string' },
      description: 'Workflows only: tasks whose results are discarded.',
    },
  },
}
