/** What may be a rule (contract 05, 5.5), and what is filled in. Pure functions. */
import {
  defaultPack,
  descriptionSchema,
  MAX_NAME_CHARS,
  nameSchema,
  packSchema,
  tagsSchema,
} from '../../core/pack-content.ts'
import type { JsonSchema } from '../../lib/schema/index.ts'
import type { CriterionDefinition, RuleDefinition, RuleRecord, RuleType } from './types.ts'

const MAX_CRITERIA = 500

export const ruleTypes: readonly RuleType[] = ['standard', 'backstop']

const parameters = (what: string): JsonSchema => ({ type: ['object', 'null'], description: `Default: none. ${what}` })

const properties: Record<string, JsonSchema> = {
  // With spaces, unlike other names.
  name: { ...nameSchema, pattern: '^[\\p{L}\\p{N}_][\\p{L}\\p{N}_ .-]*$' },
  pack: {
    ...packSchema,
    type: ['string', 'null'],
    description: `Default: \`${defaultPack}\`; of a rule that is changed: its own. There need be no such pack.`,
  },
  description: descriptionSchema,
  enabled: { type: ['boolean', 'null'], description: 'Default: false.' },
  type: {
    type: ['object', 'null'],
    additionalProperties: false,
    required: ['ref'],
    properties: { ref: { enum: ruleTypes }, parameters: parameters('Rule types have none.') },
    description: '`standard`, the default; `backstop`: fires only when no standard rule matches.',
  },
  trigger: {
    type: 'object',
    additionalProperties: false,
    required: ['type'],
    properties: {
      type: { type: 'string', description: 'Reference of the trigger type.' },
      parameters: parameters('What its `parameters_schema` says.'),
      description: descriptionSchema,
      ref: { type: ['string', 'null'], description: 'Of the trigger, as replies show it; not read.' },
    },
  },
  criteria: {
    type: ['object', 'null'],
    maxProperties: MAX_CRITERIA,
    description: 'Path into the payload → `{type, pattern, condition?}`; all must hold. Default: none.',
  },
  action: {
    type: 'object',
    additionalProperties: false,
    required: ['ref'],
    properties: {
      ref: { type: 'string', minLength: 1, maxLength: 2 * MAX_NAME_CHARS, description: 'It need not exist yet.' },
      parameters: parameters('Templates over `trigger.*`, `svckv.*` and `action_context.*`.'),
      description: descriptionSchema,
    },
  },
  tags: tagsSchema,
}

/** Of a pack file. */
export const ruleFileSchema: JsonSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'trigger', 'action'],
  properties,
}

const setByServer: JsonSchema = { description: 'Set by the server; not read.' }

/** Body of POST and PUT: what replies show can be sent back. */
export const ruleRequestSchema: JsonSchema = {
  title: 'RuleRequest',
  ...ruleFileSchema,
  properties: {
    ...properties,
    id: setByServer,
    uid: setByServer,
    ref: setByServer,
    context: setByServer,
    metadata_file: setByServer,
  },
}

/** What an author says, in full. The parameters of the trigger are not part of the rule itself. */
export type FilledRule = Pick<
  RuleRecord,
  'name' | 'pack' | 'description' | 'enabled' | 'type' | 'criteria' | 'action' | 'tags'
> & { trigger: { type: string; parameters: Record<string, unknown>; description?: string }; metadata_file?: string }

/**
 * What was left out, filled in.
 *
 * @param given has passed one of the schemas; its criteria are checked by compiling them
 * @param pack of a rule that does not say
 */
export function fillDefinition(given: RuleDefinition, pack: string): FilledRule {
  const { trigger, action } = given
  return {
    name: given.name,
    pack: given.pack ?? pack,
    description: given.description ?? '',
    enabled: given.enabled ?? false,
    type: { ref: given.type?.ref ?? 'standard', parameters: given.type?.parameters ?? {} },
    trigger: {
      type: trigger.type,
      parameters: trigger.parameters ?? {},
      ...(trigger.description ? { description: trigger.description } : {}),
    },
    criteria: (given.criteria ?? {}) as Record<string, CriterionDefinition>, // compiled before they are used
    action: {
      ref: action.ref,
      parameters: action.parameters ?? {},
      ...(action.description ? { description: action.description } : {}),
    },
    tags: given.tags ?? [],
  }
}
