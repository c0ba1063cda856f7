/** Answers of the module, for the OpenAPI document. */
import type { JsonSchema } from '../../lib/schema/index.ts'
import { ruleRequestSchema, ruleTypes } from './definition.ts'

const text: JsonSchema = { type: 'string' }
const object: JsonSchema = { type: 'object' }

/** `include_attributes` reaches inside of attributes, so that parts of theirs are missing as well. */
function listOf(properties: Record<string, JsonSchema>, required: readonly string[]): JsonSchema {
  const partial = Object.entries(properties).map(([name, schema]) => [name, { ...schema, required: [] }])
  return { type: 'array', items: { type: 'object', required, properties: Object.fromEntries(partial) } }
}

const ruleProperties: Record<string, JsonSchema> = {
  id: text,
  uid: text,
  ref: text,
  name: text,
  pack: text,
  description: text,
  enabled: { type: 'boolean' },
  type: { type: 'object', properties: { ref: { enum: ruleTypes }, parameters: object } },
  trigger: {
    type: 'object',
    required: ['type', 'ref', 'parameters'],
    properties: {
      type: { ...text, description: 'Reference of the trigger type.' },
      ref: { ...text, description: 'Reference of the trigger.' },
      parameters: object,
      description: text,
    },
  },
  criteria: {
    type: 'object',
    additionalProperties: {
      type: 'object',
      required: ['type', 'pattern'],
      properties: { type: text, pattern: {}, condition: text },
    },
  },
  action: {
    type: 'object',
    required: ['ref', 'parameters'],
    properties: {
      ref: text,
      parameters: { ...object, description: 'Secret values are masked.' },
      description: text,
    },
  },
  context: {
    type: 'object',
    required: ['user'],
    properties: {
      user: { ...text, description: 'Who wrote the rule last.' },
      scopes: {
        type: 'array',
        items: object,
        description: 'What the API key was limited to that it was written with.',
      },
    },
  },
  tags: { type: 'array', items: { type: 'object', properties: { name: text, value: text } } },
  metadata_file: { ...text, description: 'Of a rule that comes with a pack.' },
}

export const ruleAttributes = Object.keys(ruleProperties)

export const ruleSchema: JsonSchema = {
  title: 'Rule',
  type: 'object',
  required: ruleAttributes.filter((name) => name !== 'metadata_file'),
  properties: ruleProperties,
}

export const ruleListSchema = listOf(ruleProperties, ['id', 'ref'])

export const ruleViewListSchema = listOf(
  {
    ...ruleProperties,
    last_enforcement: {
      type: ['object', 'null'],
      description:
        'For who names it in `include_attributes`: the newest enforcement, with `execution_status`, the status of its execution.',
    },
  },
  ['id', 'ref'],
)

const enforcementProperties: Record<string, JsonSchema> = {
  id: text,
  trigger_instance_id: text,
  execution_id: { ...text, description: 'Absent when enforcing failed.' },
  failure_reason: text,
  rule: { type: 'object', required: ['ref', 'uid', 'id'], properties: { ref: text, uid: text, id: text } },
  enforced_at: { type: 'string', format: 'date-time' },
  status: { enum: ['succeeded', 'failed'], description: '`succeeded`: the execution was requested.' },
}

export const enforcementAttributes = Object.keys(enforcementProperties)

export const enforcementSchema: JsonSchema = {
  title: 'RuleEnforcement',
  type: 'object',
  required: ['id', 'trigger_instance_id', 'rule', 'enforced_at', 'status'],
  properties: enforcementProperties,
}

export const enforcementListSchema = listOf(enforcementProperties, ['id'])

const viewProperties: Record<string, JsonSchema> = {
  ...enforcementProperties,
  trigger_instance: { ...object, description: 'For whoever may view it.' },
  execution: { ...object, description: 'Parts of the execution, for whoever may view it.' },
}

export const enforcementViewAttributes = Object.keys(viewProperties)

export const enforcementViewSchema: JsonSchema = {
  ...enforcementSchema,
  title: 'RuleEnforcementView',
  properties: viewProperties,
}

export const enforcementViewListSchema = listOf(viewProperties, ['id'])

export const ruleTypeSchema: JsonSchema = {
  title: 'RuleType',
  type: 'object',
  required: ['id', 'name', 'description', 'enabled', 'parameters'],
  properties: { id: text, name: text, description: text, enabled: { type: 'boolean' }, parameters: object },
}

export const operatorSchema: JsonSchema = {
  title: 'CriteriaOperator',
  type: 'object',
  required: ['name', 'aliases', 'phrase', 'description', 'pattern'],
  properties: {
    name: { ...text, description: 'To be written as `type` of a criterion.' },
    aliases: { type: 'array', items: text, description: 'Further names that mean the same.' },
    phrase: { ...text, description: 'What stands between value and pattern in a sentence.' },
    description: text,
    pattern: {
      enum: ['any', 'text', 'seconds', 'none', 'criteria'],
      description: 'What it compares with; `none`: anything, since there has to be a pattern.',
    },
    conditions: {
      type: 'array',
      items: { type: 'object', properties: { name: text, phrase: text } },
      description: 'Of `search`.',
    },
  },
}

const criterionProperties: Record<string, JsonSchema> = {
  key: text,
  type: text,
  pattern: {},
  condition: text,
  value: {},
}

const verdictSchema: JsonSchema = {
  title: 'RuleVerdict',
  type: 'object',
  required: ['rule', 'verdict'],
  properties: {
    rule: {
      type: 'object',
      required: ['ref', 'uid', 'type'],
      properties: { id: text, ref: text, uid: text, type: { enum: ruleTypes } },
    },
    verdict: { enum: ['disabled', 'matched', 'not_matched', 'failed', 'not_needed'] },
    criterion: {
      type: 'object',
      description: 'The first that did not hold, with the value that it saw; long ones are cut.',
      required: ['key', 'type', 'pattern', 'value'],
      properties: criterionProperties,
    },
    reason: text,
    enforcement: { type: 'object', properties: enforcementProperties },
  },
}

export const explanationSchema: JsonSchema = {
  title: 'Explanation',
  type: 'object',
  required: ['trigger_instance', 'rules', 'hidden', 'message'],
  properties: {
    trigger_instance: {
      type: 'object',
      properties: { id: text, trigger: text, status: text, occurrence_time: text, trace_id: text },
    },
    rules: { type: 'array', items: verdictSchema },
    hidden: { type: 'integer', description: 'Rules of the trigger that the caller may not view.' },
    message: { ...text, description: 'Why, in one sentence.' },
  },
}

export const testRequestSchema: JsonSchema = {
  title: 'RuleTestRequest',
  type: 'object',
  additionalProperties: false,
  properties: {
    rule: ruleRequestSchema,
    rule_ref: { ...text, description: 'Reference or id of a rule, in place of one.' },
    trigger_instance: {
      type: 'object',
      required: ['trigger'],
      properties: {
        trigger: { ...text, minLength: 1, description: 'Reference of the trigger or its type.' },
        payload: { description: 'Default: {}.' },
        id: text,
        occurrence_time: text,
      },
      description: 'As a file holds it, or a reply; what else is in it is ignored.',
    },
    trigger_instance_id: { ...text, description: 'Of a recorded one, in place of one.' },
  },
}

export const testResultSchema: JsonSchema = {
  title: 'RuleTestResult',
  type: 'object',
  required: ['matches', 'verdict', 'criteria'],
  properties: {
    matches: { type: 'boolean' },
    verdict: verdictSchema,
    criteria: {
      type: 'array',
      description: 'Each with the value that it saw, also behind the first that does not hold; long values are cut.',
      items: {
        type: 'object',
        required: ['key', 'type', 'pattern', 'value', 'holds'],
        properties: { ...criterionProperties, holds: { type: 'boolean' }, reason: text },
      },
    },
    parameters: { ...object, description: 'Of the action; secret values are masked.' },
    problem: { ...text, description: 'What would go wrong, or why rule and trigger instance do not fit together.' },
  },
}
