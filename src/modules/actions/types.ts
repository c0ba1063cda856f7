/** Wire records of contract 02, 2.1–2.4. They keep the wire's names from row to JSON. */
import { ParameterSchemaRecord } from '../../core/parameter-schema.ts'
import { descriptionSchema, exportedSchemas, nameSchema, packSchema, tagsSchema } from '../../core/pack-content.ts'
import { notifySchema, type Notify } from '../../core/notify.ts'
import { givenKeepProperties, keepProperties } from '../../core/keep.ts'
import { runnerTypeDefinition } from '../../runners/index.ts'
import { record, Type, type JsonSchema, type ParameterSchema, type Static } from '../../lib/schema/index.ts'

const parameters = Type.MapOf(ParameterSchemaRecord, { description: 'Schemas of the parameters by their names.' })

const action = Type.Object({
  id: Type.String(),
  uid: Type.String(),
  ref: Type.String({ description: '`<pack>.<name>`' }),
  name: Type.String(),
  pack: Type.String(),
  description: Type.String(),
  enabled: Type.Boolean(),
  runner_type: Type.String({ description: 'Name of the runner type.' }),
  entry_point: Type.String({
    description: 'File that the action runs, below the `actions` folder of the pack; empty for command runners.',
  }),
  parameters,
  output_schema: Type.FreeForm({ description: 'JSON schema of the result; the runner says of which part.' }),
  tags: Type.Array(Type.Object({ name: Type.String(), value: Type.String() })),
  notify: Type.Unsafe<Record<string, unknown> | Notify>({
    type: ['object', 'array', 'string'],
    description: 'Destinations that hear how it ends; or, as an object, `on-complete`, `on-success` and `on-failure`.',
  }),
  ...keepProperties,
  metadata_file: Type.Optional(
    Type.String({ description: 'Metadata file below the folder of the pack: `actions/local.yaml`.' }),
  ),
})

const actionExample = {
  id: '67a1f0c2e4b0a1d2c3e4f501',
  uid: 'action:core:local',
  ref: 'core.local',
  name: 'local',
  pack: 'core',
  description: 'Runs a command on the host of the server.',
  enabled: true,
  runner_type: 'local-shell-cmd',
  entry_point: '',
  parameters: { cmd: { type: 'string', required: true } as ParameterSchema },
  output_schema: {},
  tags: [],
  notify: {},
  metadata_file: 'actions/local.yaml',
}

export const ActionRecord = record('Action', action, { example: actionExample })
export type ActionRecord = Static<typeof ActionRecord>

/** An action in a list: `include_attributes` and `exclude_attributes` decide which attributes it has. */
export const PartialAction = record(
  'PartialAction',
  Type.Object({ ...Type.Partial(action).properties, id: Type.String(), ref: Type.String() }),
  { example: { id: actionExample.id, ref: actionExample.ref, pack: 'core', name: 'local' } },
)

/** The parameters of an action, those of its runner type included. */
export const ActionParameters = record('ActionParameters', Type.Object({ parameters }), {
  example: { parameters: actionExample.parameters },
})

/** What an author writes: the record without what is derived. */
export type ActionDefinition = Omit<ActionRecord, 'id' | 'uid' | 'ref'>

const texts = Type.Optional(Type.Array(Type.String()))
const notifySection = Type.Optional(
  Type.Object(
    {
      message: Type.Optional(Type.Nullable(Type.String())),
      data: Type.Optional(Type.FreeForm()),
      routes: texts,
      channels: texts,
    },
    { additionalProperties: false },
  ),
)

const MAX_PARAMETERS = 500
/** Files that one request writes. */
export const MAX_DATA_FILES = 100

const definition = {
  name: Type.Unsafe<string>(nameSchema),
  pack: Type.Optional(Type.Unsafe<string | null>(packSchema)),
  description: Type.Optional(Type.Unsafe<string | null>(descriptionSchema)),
  enabled: Type.Optional(Type.Nullable(Type.Boolean())),
  runner_type: Type.String(),
  entry_point: Type.Optional(Type.Nullable(Type.String({ maxLength: 1_024 }))),
  parameters: Type.Optional(
    Type.Nullable(Type.Unsafe<Record<string, ParameterSchema>>({ type: 'object', maxProperties: MAX_PARAMETERS })),
  ),
  output_schema: Type.Optional(Type.Nullable(Type.FreeForm())),
  tags: Type.Optional(Type.Unsafe<ActionRecord['tags'] | null>(tagsSchema)),
  notify: Type.Optional(
    Type.Nullable(
      Type.Unsafe<Record<string, unknown> | Notify>({
        ...Type.Object(
          { 'on-complete': notifySection, 'on-success': notifySection, 'on-failure': notifySection },
          { additionalProperties: false },
        ),
        ...notifySchema,
        type: ['object', 'array', 'string'],
      }),
    ),
  ),
  ...givenKeepProperties,
  metadata_file: Type.Optional(Type.String()),
}

/** A definition as its author writes it; what is left out, or null, has its default. */
export const actionDefinitionSchema = Type.Object(definition, { additionalProperties: false })

/** The same in the file of a pack, which may be made from an answer of the API. */
export const actionFileSchema: JsonSchema = {
  ...actionDefinitionSchema,
  properties: { ...actionDefinitionSchema.properties, ...exportedSchemas },
}

const DataFile = Type.Object(
  {
    file_path: Type.String({
      description: 'Path below the `actions` folder of the pack, with or without the prefix `actions/`.',
    }),
    content: Type.String(),
  },
  { additionalProperties: false },
)
export type DataFile = Static<typeof DataFile>

const setByServer = Type.Optional(Type.Unknown({ description: 'Set by the server; ignored.' }))

/** What a client sends. It may send back a whole record. */
export const ActionRequest = record(
  'ActionRequest',
  Type.Object(
    {
      ...definition,
      id: setByServer,
      uid: setByServer,
      ref: setByServer,
      data_files: Type.Optional(
        Type.Nullable(
          Type.Array(DataFile, {
            maxItems: MAX_DATA_FILES,
            description: 'Files that the server writes into the pack.',
          }),
        ),
      ),
    },
    { additionalProperties: false },
  ),
  {
    example: {
      name: 'greet',
      pack: 'examples',
      runner_type: 'local-shell-cmd',
      parameters: { cmd: { default: 'echo hello' } },
    },
  },
)
export type ActionRequest = Static<typeof ActionRequest>

export const ActionDeletion = record(
  'ActionDeletion',
  Type.Object(
    {
      remove_files: Type.Optional(
        Type.Boolean({ description: 'Also deletes its metadata file and its entry point; default false.' }),
      ),
    },
    { additionalProperties: false },
  ),
  { example: { remove_files: true } },
)

/** Where the copy of an action goes. */
export const ActionClone = record(
  'ActionClone',
  Type.Object(
    {
      dest_pack: Type.Unsafe<string>({ ...packSchema, description: 'Pack of the copy; it must be registered.' }),
      dest_action: Type.Unsafe<string>({ ...nameSchema, description: 'Name of the copy.' }),
      overwrite: Type.Optional(
        Type.Boolean({ description: 'Replaces an action of that name and its files; default false.' }),
      ),
    },
    { additionalProperties: false },
  ),
  { example: { dest_pack: 'examples', dest_action: 'greet' } },
)
export type ActionClone = Static<typeof ActionClone>

const runnerTypeExample = {
  id: '67a1f0c2e4b0a1d2c3e4f502',
  uid: 'runner_type:local-shell-cmd',
  name: 'local-shell-cmd',
  description: 'Runs a command on the host of the server.',
  enabled: true,
  runner_package: 'local_runner',
  runner_module: 'local_shell_command_runner',
  runner_parameters: { cmd: { type: 'string' } as ParameterSchema },
}

export const RunnerTypeRecord = record(
  'RunnerType',
  Type.Object({ id: Type.String(), uid: Type.String(), ...runnerTypeDefinition.properties }),
  { example: runnerTypeExample },
)
/** The definition in `runners/`, with the ids of its row. */
export type RunnerTypeRecord = Static<typeof RunnerTypeRecord>

/** A runner type in a list: `include_attributes` and `exclude_attributes` decide which attributes it has. */
export const PartialRunnerType = record(
  'PartialRunnerType',
  Type.Object({ ...Type.Partial(RunnerTypeRecord).properties, id: Type.String(), name: Type.String() }),
  { example: { id: runnerTypeExample.id, name: runnerTypeExample.name } },
)

/** What a client may change of a runner type; other attributes are ignored. */
export const RunnerTypeUpdate = record('RunnerTypeUpdate', Type.Object({ enabled: Type.Boolean() }), {
  example: { enabled: false },
})
