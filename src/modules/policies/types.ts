/** Wire records of contract 02, 2.11, and the policy as the module stores it. */
import { defaultPack, descriptionSchema, MAX_NAME_CHARS, nameSchema, packSchema } from '../../core/pack-content.ts'
import { ParameterSchemaRecord } from '../../core/parameter-schema.ts'
import { record, Type, type Static } from '../../lib/schema/index.ts'

const policyType = Type.Object({
  id: Type.String(),
  uid: Type.String({ description: '`policy_type:<resource_type>:<name>`' }),
  ref: Type.String({ description: '`<resource_type>.<name>`' }),
  name: Type.String(),
  resource_type: Type.Enum(['action'], { type: 'string', description: 'Kind of resource that policies apply to.' }),
  description: Type.String(),
  enabled: Type.Boolean(),
  module: Type.String({ description: 'Part of the server that applies it.' }),
  parameters: Type.MapOf(ParameterSchemaRecord, { description: 'Schemas of the parameters by their names.' }),
})

export const PolicyTypeRecord = record('PolicyType', policyType, {
  example: {
    id: '67a1f0c2e4b0a1d2c3e4f510',
    uid: 'policy_type:action:concurrency',
    ref: 'action.concurrency',
    name: 'concurrency',
    resource_type: 'action',
    description: 'Limits how many executions of an action run at once.',
    enabled: true,
    module: 'svc.policies.concurrency',
    parameters: { threshold: { type: 'integer', required: true } },
  },
})
export type PolicyTypeRecord = Static<typeof PolicyTypeRecord>

/** A policy type in a list: `include_attributes` and `exclude_attributes` decide which attributes it has. */
export const PartialPolicyType = record(
  'PartialPolicyType',
  Type.Object({ ...Type.Partial(policyType).properties, id: Type.String(), ref: Type.String() }),
  { example: { id: '67a1f0c2e4b0a1d2c3e4f510', ref: 'action.concurrency', name: 'concurrency' } },
)

const policy = Type.Object({
  id: Type.String(),
  uid: Type.String({ description: '`policy:<pack>:<name>`' }),
  ref: Type.String(),
  name: Type.String(),
  pack: Type.String(),
  description: Type.String(),
  enabled: Type.Boolean(),
  resource_ref: Type.String({ description: 'Reference of the action that the policy applies to.' }),
  policy_type: Type.String({ description: 'Reference of the policy type.' }),
  parameters: Type.FreeForm(),
  metadata_file: Type.Optional(Type.String({ description: 'Metadata file of a policy from a pack.' })),
})

const policyExample = {
  id: '67a1f0c2e4b0a1d2c3e4f511',
  uid: 'policy:examples:one-at-a-time',
  ref: 'examples.one-at-a-time',
  name: 'one-at-a-time',
  pack: 'examples',
  description: 'Deploys one after the other.',
  enabled: true,
  resource_ref: 'examples.deploy',
  policy_type: 'action.concurrency',
  parameters: { threshold: 1, action: 'delay' },
}

export const PolicyRecord = record('Policy', policy, { example: policyExample })
export type PolicyRecord = Static<typeof PolicyRecord>

/** A policy in a list: `include_attributes` and `exclude_attributes` decide which attributes it has. */
export const PartialPolicy = record(
  'PartialPolicy',
  Type.Object({ ...Type.Partial(policy).properties, id: Type.String(), ref: Type.String() }),
  { example: { id: policyExample.id, ref: policyExample.ref, pack: 'examples', name: 'one-at-a-time' } },
)

/** A policy inside the server. */
export interface Policy extends PolicyRecord {
  revision: number
}

const definition = {
  name: Type.Unsafe<string>(nameSchema),
  pack: Type.Optional(
    Type.Unsafe<string | null>({
      ...packSchema,
      type: ['string', 'null'],
      description: `Default: \`${defaultPack}\`; on update: the pack of the policy. The pack need not exist.`,
    }),
  ),
  description: Type.Optional(Type.Unsafe<string | null>(descriptionSchema)),
  enabled: Type.Optional(Type.Nullable(Type.Boolean({ description: 'Default: true.' }))),
  resource_ref: Type.String({
    pattern: '^\\S+\\.\\S+$',
    maxLength: 2 * MAX_NAME_CHARS,
    description: 'Reference of the action that the policy applies to. It need not exist yet.',
  }),
  policy_type: Type.String({ description: 'Reference of the policy type, such as `action.concurrency`.' }),
  parameters: Type.Optional(
    Type.Nullable(Type.FreeForm({ description: 'They fit the parameter schemas of the policy type.' })),
  ),
}

const setByServer = Type.Optional(Type.Unknown({ description: 'Set by the server; ignored.' }))
const setProperties = { id: setByServer, uid: setByServer, ref: setByServer, metadata_file: setByServer }

/** A definition in a pack, also as the API has given it; what is left out, or null, has its default. */
export const policyDefinitionSchema = Type.Object({ ...definition, ...setProperties }, { additionalProperties: false })
export type PolicyDefinition = Static<typeof policyDefinitionSchema>

/** Body of POST and PUT. A client may send back a whole record. */
export const PolicyRequest = record(
  'PolicyRequest',
  Type.Object({ ...definition, ...setProperties }, { additionalProperties: false }),
  {
    example: {
      name: 'one-at-a-time',
      pack: 'examples',
      resource_ref: 'examples.deploy',
      policy_type: 'action.concurrency',
      parameters: { threshold: 1 },
    },
  },
)
