/** Wire records of contract 02, 2.13 (aliases of actions). */
import { record, Type, type Static } from '../../lib/schema/index.ts'
import { MAX_COMMAND_CHARS } from './format.ts'

export const AliasFormat = record(
  'AliasFormat',
  Type.Object({
    display: Type.Optional(Type.String({ description: 'For help; default: the first representation.' })),
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

export const aliasExample: Static<typeof alias> = {
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
}

export const AliasRecord = record('ActionAlias', alias, { example: aliasExample })
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

const setByServer = Type.Optional(Type.Unknown({ description: 'Set by the server; ignored.' }))
const freeForm = Type.Optional(Type.Nullable(Type.FreeForm()))

/** Body of POST and PUT. A client may send back a whole record. The rest of what an alias has to be: `definition.ts`. */
export const AliasRequest = record(
  'ActionAliasRequest',
  Type.Object(
    {
      name: Type.String(),
      pack: Type.Optional(
        Type.Nullable(Type.String({ description: 'Default: `default`; on update: the pack of the alias.' })),
      ),
      description: Type.Optional(Type.Nullable(Type.String())),
      enabled: Type.Optional(Type.Nullable(Type.Boolean({ description: 'Default: true.' }))),
      action_ref: Type.String({ description: 'Reference of the action that it runs. It need not exist yet.' }),
      formats: Type.Array(Type.Unknown(), {
        description: 'Texts, or objects with `display`, `representation` (texts) and `match_multiple`.',
      }),
      ack: freeForm,
      result: freeForm,
      extra: freeForm,
      immutable_parameters: freeForm,
      id: setByServer,
      uid: setByServer,
      ref: setByServer,
      metadata_file: setByServer,
    },
    { additionalProperties: false },
  ),
  { example: { name: 'deploy', pack: 'deploy', action_ref: 'deploy.deploy', formats: ['deploy {{ service }}'] } },
)
export type AliasRequest = Static<typeof AliasRequest>

export const command = Type.String({ maxLength: MAX_COMMAND_CHARS, description: 'What the chat user wrote.' })

export const MatchRequest = record(
  'ActionAliasMatchRequest',
  Type.Object({ command }, { additionalProperties: false }),
  {
    example: { command: 'deploy web' },
  },
)

export const MatchRecord = record(
  'ActionAliasMatch',
  Type.Object({
    actionalias: AliasRecord,
    display: Type.String({ description: 'The format as help shows it.' }),
    representation: Type.String({ description: 'The format that fits.' }),
  }),
  {
    example: {
      actionalias: aliasExample,
      display: 'deploy {{ service }}',
      representation: 'deploy {{ service }}',
    },
  },
)

export const HelpRecord = record(
  'ActionAliasHelp',
  Type.Object({
    available: Type.Integer({ description: 'How many there are in all.' }),
    helpstrings: Type.Array(Type.Object({ pack: Type.String(), display: Type.String(), description: Type.String() })),
  }),
  {
    example: {
      available: 1,
      helpstrings: [{ pack: 'deploy', display: 'deploy {{ service }}', description: 'Deploys a service.' }],
    },
  },
)
export type HelpRecord = Static<typeof HelpRecord>
