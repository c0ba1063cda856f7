/** Built-in trigger types in the pack `core` (contract 05, 5.8 and 5.9; 06). To add one, add an entry. */
import type { JsonSchema, SchemaProblem } from '../../../lib/schema/index.ts'
import { problemOfTimer, timerParameters, timerPayloadSchema, type TimerType } from './timer-parameters.ts'
import type { TriggerTypeDefinition } from '../types.ts'
import * as subjects from './subjects.ts'
import { problemOfWebhook, webhookParametersSchema } from './webhook-parameters.ts'

export const corePack = 'core'
export const actionTriggerRef = 'core.svc.generic.actiontrigger'
export const notifyTriggerRef = 'core.svc.generic.notifytrigger'
export const inquiryRef = 'core.svc.generic.inquiry'
export const webhookTypeRef = 'core.svc.webhook'
export const missedRef = 'core.svc.missed'

interface BuiltinType {
  /** Name without the pack. */
  name: string
  description: string
  payload: JsonSchema
  /** Schema of the parameters; absent: none. */
  parameters?: JsonSchema
  /** Checks that the schema cannot express. @param parameters valid against the schema */
  /** A problem begins with the path of the parameter: `timezone: …`, `signature.secret: …`. */
  readonly problemOf?: (parameters: Readonly<Record<string, unknown>>) => string | undefined
  /** svc always checks payloads, because they come from outside; the configuration does not matter. */
  isAlwaysChecked?: true
  /** The record that payloads tell about; absent: they come from outside, or of a clock. */
  subject?: subjects.PayloadSubject
}

const text = { type: 'string' }
const textOrNull = { type: ['string', 'null'] }
const anything = {}
const object = { type: 'object' }

function payload(properties: Record<string, JsonSchema>): JsonSchema {
  return { type: 'object', properties }
}

function timer(ref: TimerType, description: string): BuiltinType {
  return {
    name: ref.slice(corePack.length + 1),
    description,
    payload: timerPayloadSchema,
    parameters: timerParameters[ref],
    problemOf: (parameters) => problemOfTimer(ref, parameters),
    isAlwaysChecked: true,
  }
}

const keyValuePair = payload({ object })

const types: readonly BuiltinType[] = [
  {
    name: 'svc.webhook',
    description: 'Fires for each request to the webhook with this URL.',
    payload: {
      type: 'object',
      properties: { headers: object, headers_lower: object, body: { type: ['object', 'array'], required: true } },
    },
    parameters: webhookParametersSchema,
    problemOf: problemOfWebhook,
    isAlwaysChecked: true,
  },
  timer('core.svc.IntervalTimer', 'Fires at a fixed interval.'),
  timer('core.svc.DateTimer', 'Fires once at a date.'),
  timer('core.svc.CronTimer', 'Fires at the times that cron expressions match.'),
  {
    name: 'svc.generic.actiontrigger',
    description: 'Fires when an execution reaches a status in action_sensor.emit_when.',
    subject: subjects.execution,
    payload: payload({
      execution_id: text,
      status: text,
      start_timestamp: text,
      action_name: text,
      action_ref: text,
      runner_ref: text,
      parameters: object,
      result: anything,
      end_timestamp: textOrNull,
      elapsed_seconds: { type: ['number', 'null'] },
      attempt: { type: 'integer' },
      will_retry: { type: 'boolean' },
      error: textOrNull,
      user: text,
      rule: textOrNull,
      trace_id: text,
      web_url: text,
    }),
  },
  {
    name: 'svc.generic.notifytrigger',
    description: 'Fires for each notification route of a finished execution.',
    subject: subjects.notification,
    payload: payload({
      execution_id: text,
      status: text,
      start_timestamp: text,
      end_timestamp: text,
      action_ref: text,
      runner_ref: text,
      channel: text,
      route: text,
      message: text,
      data: object,
    }),
  },
  {
    name: 'svc.generic.inquiry',
    description: 'An inquiry waits for a response.',
    subject: subjects.inquiry,
    payload: payload({ id: text, route: text }),
  },
  {
    name: 'svc.missed',
    description: 'Fires when a rule has not succeeded as its attribute "expect" says, once until it succeeds again.',
    subject: subjects.missedJob,
    payload: payload({
      rule: payload({ id: text, ref: text }),
      reason: text,
      due_timestamp: text,
      late_seconds: { type: 'integer' },
      expect: object,
      last_success_timestamp: { type: ['string', 'null'] },
      execution_id: { type: ['string', 'null'] },
      trace_id: { type: ['string', 'null'] },
    }),
  },
  {
    name: 'svc.action.file_written',
    description: 'Fires when an action file is written through the API.',
    subject: subjects.actionFile,
    payload: payload({ ref: text, file_path: text, host_info: object }),
  },
  {
    name: 'svc.sensor.process_spawn',
    description: 'Fires when a sensor process starts.',
    subject: subjects.sensor,
    payload: payload({ id: text, timestamp: { type: 'number' }, pid: { type: 'integer' }, cmd: anything }),
  },
  {
    name: 'svc.sensor.process_exit',
    description: 'Fires when a sensor process exits.',
    subject: subjects.sensor,
    payload: payload({ id: text, timestamp: { type: 'number' }, exit_code: { type: ['integer', 'null'] } }),
  },
  {
    name: 'svc.key_value_pair.create',
    description: 'Fires when a key-value pair is created.',
    subject: subjects.item,
    payload: keyValuePair,
  },
  {
    name: 'svc.key_value_pair.update',
    description: 'Fires when a key-value pair is set.',
    subject: subjects.item,
    payload: keyValuePair,
  },
  {
    name: 'svc.key_value_pair.value_change',
    description: 'Fires when the value of a key-value pair changes.',
    subject: subjects.changedItem,
    payload: payload({ old_object: object, new_object: object }),
  },
  {
    name: 'svc.key_value_pair.delete',
    description: 'Fires when a key-value pair is deleted.',
    subject: subjects.item,
    payload: keyValuePair,
  },
]

const byRef = new Map(types.map((type) => [`${corePack}.${type.name}`, type]))

export const builtinTypes: readonly TriggerTypeDefinition[] = types.map((type) => ({
  name: type.name,
  pack: corePack,
  description: type.description,
  payload_schema: type.payload,
  parameters_schema: type.parameters ?? {},
  tags: [],
}))

export function isBuiltin(ref: string): boolean {
  return byRef.has(ref)
}

/** References of the types whose payloads tell about records. */
export const internalTypes: readonly string[] = [...byRef].flatMap(([ref, { subject }]) =>
  subject === undefined ? [] : [ref],
)

/** Internal types: who may see what of their payloads; undefined: the type is no internal one. */
export function subjectOf(ref: string): subjects.PayloadSubject | undefined {
  return byRef.get(ref)?.subject
}

/** Webhooks and timers: whether payloads of this type are always checked. */
export function isAlwaysChecked(ref: string): boolean {
  return byRef.get(ref)?.isAlwaysChecked === true
}

/** First problem in parameters that are valid against the schema of the type. */
export function problemOfBuiltin(
  ref: string,
  parameters: Readonly<Record<string, unknown>>,
): SchemaProblem | undefined {
  const message = byRef.get(ref)?.problemOf?.(parameters)
  if (message === undefined) return undefined
  const [, written = ''] = /^([\w.]+)[: ]/.exec(message) ?? []
  const path = written.split('.')
  return { path: Object.hasOwn(parameters, path[0] ?? '') ? path : [], message }
}
