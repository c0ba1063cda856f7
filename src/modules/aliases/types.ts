/** Wire records of contract 02, 2.13 (aliases of actions). */
import { record, Type, type Static } from '../../lib/schema/index.ts'

export const AliasFormat = record(
  'AliasFormat',
  Type.Object({
    display: Type.String(),
    representation: Type.Array(Type.String()),
    match_multiple: Type.Optional(Type.Boolean()),
  }),
  { example: { display: 'deploy <service>', representation: ['deploy {{ service }}'] } },
)
export type AliasFormat = Static<typeof AliasFormat>

const alias = Type.Object({
  id: Type.String(),
  uid: Type.String(),
  ref: Type.String(),
  name: Type.String(),
  pack: Type.String(),
  description: Type.String(),
  enabled: Type.Boolean(),
  action_ref: Type.String(),
  formats: Type.Array(Type.Union([Type.String(), AliasFormat])),
  ack: Type.FreeForm(),
  result: Type.FreeForm(),
  extra: Type.FreeForm(),
  immutable_parameters: Type.FreeForm(),
  metadata_file: Type.Optional(
    Type.String({ description: 'Relative to the folder of the pack, such as `aliases/deploy.yaml`.' }),
  ),
})

export const aliasAttributes = Object.keys(alias.properties)

export const AliasRecord = record('ActionAlias', alias, {
  example: {
    id: '67a1f0c2e4b0a1d2c3e4f514',
    uid: 'action_alias:deploy:deploy',
    ref: 'deploy.deploy',
    name: 'deploy',
    pack: 'deploy',
    description: 'Deploys a service.',
    enabled: true,
    action_ref: 'deploy.deploy',
    formats: ['deploy {{ service }}'],
    ack: {},
    result: {},
    extra: {},
    immutable_parameters: {},
  },
})
export type AliasRecord = Static<typeof AliasRecord>

/** An alias in a list: `include_attributes` and `exclude_attributes` decide which attributes it has. */
export const PartialAlias = record(
  'PartialActionAlias',
  Type.Object({
    ...Type.Partial(alias).properties,
    id: Type.String(),
    ref: Type.String(),
    pack: Type.String(),
    name: Type.String(),
  }),
  { example: { id: '67a1f0c2e4b0a1d2c3e4f514', ref: 'deploy.deploy', pack: 'deploy', name: 'deploy' } },
)

/** What an author writes: the record without derived properties. */
export type AliasDefinition = Omit<AliasRecord, 'id' | 'uid' | 'ref'>
