/** `svc pack config`: shows and sets the configuration of packs (contract 09, 9.3; contract 02, 2.9). */
import { Option } from 'commander'
import { secretMask } from '../../lib/log/index.ts'
import { CliCommand } from '../command.ts'
import { recordIn, textOrEmpty, toObject } from '../connection/responses.ts'
import { exitCodes } from '../exit-codes.ts'
import { CliFailure, HttpFailure, NotFound } from '../failures.ts'
import { addCommonOptions, splitAttributes } from '../options.ts'
import { cellText, printable, type Json } from '../output/print.ts'
import { toYaml } from '../output/yaml.ts'
import { withSecretInput } from '../input/prompt.ts'
import { callOn, getRecord, listRecords, printList, printRecord, subjectOf, type CliRecordKind } from '../records.ts'
import { addAttributeOption, readDefinition, type AttributeFlags, type CliResource } from '../resources.ts'
import { withSession, type CommandContext, type Session } from '../session.ts'

interface ConfigFlags extends AttributeFlags {
  file?: string
  show?: boolean
  schema?: boolean
}

const config: CliRecordKind = { name: 'Configuration', path: '/configs' }
const configSchema: CliRecordKind = { name: 'Configuration schema', path: '/config_schemas' }

export function createConfigCommand(context: CommandContext, pack: CliResource): CliCommand {
  return addAttributeOption(addCommonOptions(new CliCommand('config')))
    .description(
      'Set the configuration of a pack. svc prompts for each attribute, or reads one line of standard input per attribute. Without a pack, list the packs that can be configured.',
    )
    .argument('[ref]', 'reference of the pack')
    .completions({ '--file': 'file' })
    .addOption(
      new Option('--file <values>', 'read all values from this .yaml or .json file, without prompts').conflicts(
        'schema',
      ),
    )
    .addOption(new Option('--show', 'show the current configuration, and change nothing').conflicts(['file', 'schema']))
    .option('--schema', 'show the configuration schema, and change nothing')
    .notes(
      'An empty answer keeps the current value or sets the default. Secrets are masked: ******** means the stored secret, also in a file.',
    )
    .examples(
      'svc pack config examples',
      'svc pack config examples --show',
      'svc pack config examples --file examples.yaml',
    )
    .sample('examples.yaml', 'greeting: Good morning')
    .action((ref: string | undefined, flags: ConfigFlags) =>
      withSession(context, flags, (session) =>
        ref === undefined ? listConfigs(session, flags) : configure(session, pack, ref, flags),
      ),
    )
}

async function configure(session: Session, pack: CliResource, ref: string, flags: ConfigFlags): Promise<number> {
  if (flags.schema === true) return showSchema(session, ref, flags)
  if (flags.show === true) {
    await showConfig(session, await getRecord(session, config, ref), flags)
    return exitCodes.ok
  }
  const schema = {
    type: 'object',
    properties: toObject((await findRecord(session, configSchema, ref))?.['attributes']),
  }
  const { secretNames } = await import('../input/questions.ts')
  session.client.maskNames(secretNames(schema))
  const saved =
    flags.file === undefined
      ? await askConfig(session, pack, ref, schema)
      : await saveFile(session, pack, ref, toObject(schema.properties), flags.file)
  if (saved === undefined) {
    session.note('Nothing was changed.\n')
    return exitCodes.failed
  }
  await showConfig(session, saved, flags)
  return exitCodes.ok
}

/** @returns the saved configuration; undefined when the user chose not to save */
async function askConfig(session: Session, pack: CliResource, ref: string, schema: Json): Promise<Json | undefined> {
  const present = await findRecord(session, config, ref)
  if (Object.keys(toObject(schema['properties'])).length === 0) {
    await getRecord(session, pack, ref)
    throw new CliFailure(`The pack "${printable(ref)}" has no configuration schema. Use --file to set values.`)
  }
  const { askObject, confirm } = await import('../input/questions.ts')
  return withSecretInput(session, async (input) => {
    const questions = { input, note: session.note, allowsTemplates: true }
    let values = toObject(present?.['values'])
    for (;;) {
      values = await askObject(questions, schema, values)
      if (!input.isTerminal()) {
        // An empty standard input confirms nothing.
        if (input.isUnused())
          throw new CliFailure('Standard input is not a terminal and has no answers. Use --file to set values.')
        return save(session, pack, ref, values)
      }
      session.note(`\nThe configuration of ${printable(ref)}:\n${await preview(schema, values)}\n`)
      if (!(await confirm(questions, 'Save it?', true))) return undefined
      try {
        return await save(session, pack, ref, values)
      } catch (error) {
        if (!(error instanceof HttpFailure && error.status === 400)) throw error
        session.note(`\nERROR: ${error.message}\n`)
        if (!(await confirm(questions, 'Change the answers?', true))) return undefined
      }
    }
  })
}

/** The values as YAML, with their secrets masked. */
async function preview(schema: Json, values: Json): Promise<string> {
  // A schema is read as the server reads it; that costs time which only this needs.
  const { compileSecrets, maskSecrets } = await import('../../lib/secrets/secrets.ts')
  return toYaml(maskSecrets(values, compileSecrets(schema)))
}

/** @param known attributes that the schema of the pack has; any other attribute may be a secret */
async function saveFile(session: Session, pack: CliResource, ref: string, known: Json, file: string): Promise<Json> {
  const values = await readDefinition(file)
  session.client.maskNames(Object.keys(values).filter((name) => !Object.hasOwn(known, name)))
  return save(session, pack, ref, values)
}

/**
 * Saves the values; where one is a mask, the server keeps what it has stored there.
 *
 * @returns the configuration, its secrets masked
 */
async function save(session: Session, pack: CliResource, ref: string, values: Json): Promise<Json> {
  return recordIn(await callOn(session, 'PUT', subjectOf({ ...config, name: pack.name }, ref), { body: values }))
}

async function showConfig(session: Session, record: Json, { attr }: AttributeFlags): Promise<void> {
  await printRecord(session, record, ['id', 'pack', 'values'], splitAttributes(attr))
}

async function showSchema(session: Session, ref: string, { attr }: AttributeFlags): Promise<number> {
  const record = await getRecord(session, configSchema, ref)
  if (session.form === 'human' && attr === undefined) {
    const rows = attributesOf(toObject(record['attributes']), '')
    await showRows(session, rows, ['attribute', 'type', 'required', 'default', 'description'], 'Attribute')
  } else {
    await printRecord(session, record, ['id', 'pack', 'attributes'], splitAttributes(attr))
  }
  return exitCodes.ok
}

/** One row for each attribute; an object is followed by the attributes within it. */
function attributesOf(properties: Json, path: string): Json[] {
  return Object.entries(properties).flatMap(([name, property]) => {
    const schema = toObject(property)
    const { type, required, secret, default: preset, description, items, properties: inner } = schema
    const choices = Array.isArray(schema['enum']) ? `: ${schema['enum'].map(cellText).join(', ')}` : ''
    const own = {
      attribute: `${path}${name}`,
      type: `${textOrEmpty(type)}${secret === true ? ' (secret)' : ''}${choices}`,
      required: required === true,
      default: secret === true && preset !== undefined ? secretMask : preset,
      description,
    }
    return [
      own,
      ...attributesOf(toObject(inner), `${path}${name}.`),
      ...attributesOf(toObject(toObject(items)['properties']), `${path}${name}[].`),
    ]
  })
}

/** Lists packs with a configuration or a configuration schema. */
async function listConfigs(session: Session, flags: ConfigFlags): Promise<number> {
  const option = (['file', 'show', 'schema'] as const).find((name) => flags[name] !== undefined)
  if (option !== undefined) throw new CliFailure(`--${option} needs the reference of a pack.`, exitCodes.usage)
  const [configs, schemas] = await Promise.all(
    [config, configSchema].map(async ({ path }) => (await listRecords(session, path, {}, -1)).records),
  )
  const byPack = new Map<string, Json>()
  for (const { pack, attributes } of schemas ?? []) {
    byPack.set(textOrEmpty(pack), { pack, configured: false, attributes, values: null })
  }
  for (const { pack, values } of configs ?? []) {
    byPack.set(textOrEmpty(pack), { attributes: {}, ...byPack.get(textOrEmpty(pack)), pack, configured: true, values })
  }
  const records = [...byPack.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, record]) => record)
  const rows =
    session.form === 'human' && flags.attr === undefined
      ? records.map((record) => ({ ...record, attributes: Object.keys(toObject(record['attributes'])).join(', ') }))
      : records
  await showRows(session, rows, ['pack', 'configured', 'attributes'], config.name, splitAttributes(flags.attr))
  return exitCodes.ok
}

async function showRows(
  session: Session,
  rows: Json[],
  columns: readonly string[],
  name: string,
  attributes?: string[],
): Promise<void> {
  await printList(session, rows, { columns, attributes, name, pluralName: `${name}s` })
}

/** The record of a pack; undefined when there is none. */
async function findRecord(session: Session, kind: CliRecordKind, ref: string): Promise<Json | undefined> {
  try {
    return await getRecord(session, kind, ref)
  } catch (error) {
    if (error instanceof NotFound) return undefined
    throw error
  }
}
