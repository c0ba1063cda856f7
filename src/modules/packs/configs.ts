/** Configurations of packs (contract 02, 2.9): kept from registration on, resolved when an action needs them. */
import { join } from 'node:path'
import { problemOfContainedFile, replaceSecretFile } from '../../lib/files/index.ts'
import type { Database } from '../../db/index.ts'
import type { Encryption } from '../../core/encryption.ts'
import { configInvalid, configNotFound, configNotWritten, configTemplateFailed, isAppError } from '../../core/errors.ts'
import { newId } from '../../core/ids.ts'
import {
  describeProblem,
  problemAt,
  readMetadataFile,
  type FileProblem,
  type MetadataDocument,
} from '../../lib/text/index.ts'
import { createRedactor } from '../../lib/log/index.ts'
import { fieldOf, canonical, isObject, MASK } from '../../lib/schema/index.ts'
import { compileSecrets, keepMasked, secretsIn, type ReplaceSecrets } from '../../lib/secrets/index.ts'
import { createRenderer, findTemplates, textLengthOf } from '../../core/template-values.ts'
import {
  isTemplate,
  references,
  TemplateError,
  type HostFunction,
  type TemplateScope,
} from '../../lib/template/index.ts'
import { fillDefaults, isDynamic, mapLeaves, problemOfValues, problemsOfAttributes } from './config-values.ts'
import { configSchemaFile, type PackContent } from './read.ts'
import type { PackStore } from './store.ts'
import type { ConfigAttributes, ConfigRecord } from './types.ts'
import { yamlTextOf, type PackConfig } from '../../core/pack-content.ts'
import type { TemplateReader } from '../../core/template-reader.ts'
import { mapObject, readJson, writeJson } from '../../lib/json/index.ts'

const MAX_FILE_BYTES = 1_048_576
/** Of a configuration in a request; a file may have more. */
const MAX_VALUES = 2_000
const MAX_LENGTH = 256 * 1024

export interface Configs {
  /**
   * @returns the configuration in the reader's name; it is shared and must not be changed. With a `problem` it has only
   * defaults: whoever needs the configuration fails with that
   * @throws TEMPLATE_FAILED
   */
  resolve(pack: string, reader: TemplateReader): PackConfig
  /** Of the site; it need not exist. Absolute. */
  fileOf(pack: string): string
  /** Why the file of the configuration is not used, or only unchecked, and what follows; undefined: it is, or there is none. */
  problemOf(pack: string): string | undefined
  /**
   * Registers the configuration and schema of a pack. If one is invalid, the registered one stays; without one there is no
   * schema for the configuration.
   */
  register(content: Pick<PackContent, 'ref' | 'configSchema'>): Promise<ConfigRegistration>
  unregister(pack: string): Promise<void>
  /** @param unmasked with its secrets @throws CONFIG_NOT_FOUND */
  get(pack: string, unmasked: boolean): ConfigRecord
  /**
   * Writes the configuration file of the site; a mask keeps the stored value. One write at a time per pack.
   *
   * @throws CONFIG_INVALID, STORAGE_FAILED, CRYPTO_KEY_MISSING
   */
  put(pack: string, values: Record<string, unknown>): Promise<void>
}

export interface ConfigRegistration {
  /** 1: there is a configuration that can be used. */
  registered: number
  removed: number
  problems: FileProblem[]
}

/** What `resolve` needs, worked out once. */
interface Prepared {
  attributes: ConfigAttributes
  isStored: boolean
  /** Defaults filled in. */
  values: Record<string, unknown>
  /** The values for every reader; undefined when there are templates. */
  fixed: PackConfig | undefined
}

const MAX_PREPARED = 1_000

const emptyDocument: MetadataDocument = { value: undefined, warnings: [], lineOf: () => undefined }

const usesEarlier = 'svc uses the configuration as it was registered last'

export function createConfigs(deps: {
  database: Pick<Database, 'write'>
  store: PackStore
  encryption: Encryption
  readonly templates: (reader: TemplateReader) => TemplateScope
  /** Where the configurations of the site are. Absolute. */
  folder: string
}): Configs {
  const { database, store, encryption, templates, folder } = deps
  const { isSecret: isSecretName } = createRedactor(true)
  const prepared = new Map<string, Prepared>()

  const contextOf = (pack: string): string => `config:${pack}`
  const attributesOf = (pack: string): ConfigAttributes => store.findConfigSchema(pack)?.attributes ?? {}
  const fileNameOf = (pack: string): string => `configs/${pack}.yaml`

  /** @throws CRYPTO_KEY_MISSING, CIPHER_TEXT_INVALID */
  function openValues(pack: string, stored: string): Record<string, unknown> {
    const what = `the configuration of pack "${pack}"`
    const text = stored.startsWith('{') ? stored : encryption.decrypt(stored, contextOf(pack), what)
    return readJson(text) as Record<string, unknown> // written by `toStored`
  }

  /** @throws CRYPTO_KEY_MISSING */
  function toStored(pack: string, attributes: ConfigAttributes, values: Record<string, unknown>): string {
    const text = writeJson(values)
    const hasSecrets = canonical(secretsOf(attributes)(values, () => MASK)) !== canonical(values)
    return hasSecrets ? encryption.encrypt(text, contextOf(pack), `the configuration of pack "${pack}"`) : text
  }

  /** For values without a schema the name decides whether they are secret. */
  function secretsOf(attributes: ConfigAttributes): ReplaceSecrets {
    const known = compileSecrets({ properties: attributes })
    return (value, replace, counterpart) => {
      const replaced = known === undefined ? value : known(value, replace, counterpart)
      if (!isObject(replaced)) return replaced
      const other = isObject(counterpart) ? counterpart : {}
      return mapObject(replaced, (inner, name) =>
        Object.hasOwn(attributes, name) ? inner : replaceNamed(name, inner, replace, other[name]),
      )
    }
  }

  function replaceNamed(
    name: string,
    value: unknown,
    replace: (secret: unknown, counterpart: unknown) => unknown,
    counterpart: unknown,
  ): unknown {
    if (isSecretName(name)) return replace(value, counterpart)
    if (Array.isArray(value)) {
      return value.map((item: unknown, i) =>
        replaceNamed('', item, replace, Array.isArray(counterpart) ? counterpart[i] : undefined),
      )
    }
    if (!isObject(value)) return value
    const other = isObject(counterpart) ? counterpart : {}
    return mapObject(value, (inner, key) => replaceNamed(key, inner, replace, other[key]))
  }

  function prepare(pack: string): Prepared {
    const known = prepared.get(pack)
    if (known !== undefined) return known
    const attributes = attributesOf(pack)
    const stored = store.findConfig(pack)
    const values = fillDefaults(attributes, stored === undefined ? {} : openValues(pack, stored.values), true)
    let isFixed = true
    mapLeaves(attributes, values, ({ value }) => {
      isFixed &&= !isDynamic(value)
      return value
    })
    const fixed = isFixed ? configOf(attributes, values, []) : undefined
    const made = { attributes, isStored: stored !== undefined, values, fixed }
    // Templates can name packs that do not exist.
    if (prepared.size >= MAX_PREPARED) prepared.clear()
    prepared.set(pack, made)
    return made
  }

  /** @param decrypted the paths of attributes that a template has decrypted, whatever the schema says, and their values */
  function configOf(
    attributes: ConfigAttributes,
    values: Record<string, unknown>,
    decrypted: readonly { path: string; value: unknown }[],
  ): PackConfig {
    const paths = new Set(decrypted.map(({ path }) => path))
    const secrets = secretsIn(values, secretsOf(attributes))
    return {
      values,
      secrets: [...new Set([...secrets, ...decrypted.map(({ value }) => value)])],
      withoutSecrets(replace) {
        // Text that no configuration can hold: what `replace` gives must not be taken apart by the second walk.
        const hidden = `\0${newId()}`
        const marked = secretsOf(attributes)(values, (secret) => (secret === null ? null : hidden))
        return mapLeaves(attributes, marked as Record<string, unknown>, ({ path, value }) =>
          value === hidden || paths.has(path.join('\0')) ? replace(path) : value,
        )
      },
    }
  }

  function problemText(pack: string, path: readonly string[], message: string): string {
    return `Failed validating attribute "${path.join('.')}" in config for pack "${pack}" (${fileNameOf(pack)}): ${message}`
  }

  function remarkOf(pack: string): FileProblem | undefined {
    return store.remarksOf(pack).find((remark) => isOfConfig(remark) && remark.isWarning !== true)
  }

  /** What is to be known of a configuration that is used. */
  function warningOf(pack: string): FileProblem | undefined {
    return store.remarksOf(pack).find((remark) => isOfConfig(remark) && remark.isWarning === true)
  }

  function rendered(pack: string, reader: TemplateReader): PackConfig {
    const { attributes, values } = prepare(pack)
    const found = findTemplates(values)
    const scope = templates(reader)
    const variables = new Map(Object.entries(scope.variables))
    const decrypted: { path: string; value: unknown }[] = []
    let at = { path: '', key: '', value: '' }
    const filters = { ...scope.filters }
    const decrypt = filters['decrypt_kv']
    if (decrypt !== undefined)
      filters['decrypt_kv'] = remembering(decrypt, (value) => decrypted.push({ path: at.path, value }))
    const renderer = createRenderer(found ?? { count: 0, isTooLong: false }, {
      filters,
      fail: (_, why) => configTemplateFailed(pack, at.key, at.value, why),
    })
    const resolved = mapLeaves(attributes, values, ({ path, value, isSecret }) => {
      if (!isDynamic(value)) return value
      at = { path: path.join('\0'), key: path.join('.'), value: isSecret ? MASK : value }
      const problem = problemOfTemplate(value)
      if (problem !== undefined) throw configTemplateFailed(pack, at.key, at.value, problem)
      const text = renderer.render(at.key, value, variables)
      // A key that does not exist reads as an empty text.
      if (text === '' || text === undefined || text === null) return null
      // Values are text, as the incumbent gives them to actions.
      if (!isSecret) return typeof text === 'string' ? text : renderer.print(at.key, text)
      return isCipherText(text) ? renderer.render(at.key, '{{ value | decrypt_kv }}', new Map([['value', text]])) : text
    })
    return configOf(attributes, resolved, decrypted)
  }

  return {
    fileOf: (pack) => join(folder, `${pack}.yaml`),

    problemOf(pack) {
      const remark = remarkOf(pack)
      if (remark === undefined) {
        const warning = warningOf(pack)
        return warning && describeProblem(warning)
      }
      const isStored = store.findConfig(pack) !== undefined
      return `${describeProblem(remark)}; ${isStored ? usesEarlier : 'actions that use it fail'}`
    },

    resolve(pack, reader) {
      const { attributes, fixed, isStored } = prepare(pack)
      const found = remarkOf(pack)
      if (found === undefined) return fixed ?? rendered(pack, reader)
      const problem = describeProblem(found)
      if (!isStored) return { ...(fixed ?? configOf(attributes, {}, [])), problem }
      const remark = `The configuration file of pack "${pack}" is not used: ${problem}; ${usesEarlier}.`
      return { ...(fixed ?? rendered(pack, reader)), remark }
    },

    async register({ ref, configSchema }) {
      const problems: FileProblem[] = []
      let attributes = attributesOf(ref)
      const before = store.findConfigSchema(ref)
      const isThere = (await problemOfContainedFile(folder, `${ref}.yaml`)) !== 'missing'
      let isSchemaUsed = configSchema !== 'broken'
      if (configSchema !== undefined && configSchema !== 'broken') {
        const { value, lineOf } = configSchema.document
        // An empty schema is written as an empty file, or as comments alone.
        const given = value ?? {}
        for (const { path, message } of problemsOfAttributes(given)) {
          problems.push(problemAt(configSchemaFile, path, lineOf, message))
        }
        isSchemaUsed = problems.length === 0
        if (isSchemaUsed) attributes = given as ConfigAttributes // has been checked
        if (isSchemaUsed && (before === undefined || writeJson(before.attributes) !== writeJson(attributes))) {
          const record = { id: before?.id ?? newId(), pack: ref, attributes }
          await database.write({ steps: [store.putConfigSchema(record)], facts: [] })
        }
      } else if (configSchema === undefined && before !== undefined) {
        attributes = {}
        await database.write({ steps: [store.deleteConfigSchema(ref)], facts: [] })
      }
      prepared.delete(ref)
      // A mistake in the schema must not take the values away from the actions of the pack.
      if (!isSchemaUsed && isThere) {
        const how = before === undefined ? 'used unchecked' : 'checked against the schema that was registered last'
        const message = `${configSchemaFile} is invalid, so the configuration is ${how}`
        problems.push({ file: fileNameOf(ref), message, isWarning: true })
      }

      if ((await problemOfContainedFile(folder, `${ref}.yml`)) !== 'missing') {
        problems.push({ file: `configs/${ref}.yml`, message: `rename the file to ${ref}.yaml` })
      }
      if (!isThere) {
        const stored = store.findConfig(ref)
        if (stored !== undefined) await database.write({ steps: [store.deleteConfig(ref)], facts: [] })
        prepared.delete(ref)
        return { registered: 0, removed: stored === undefined ? 0 : 1, problems }
      }
      const file = await readMetadataFile(folder, `${ref}.yaml`, MAX_FILE_BYTES)
      // An empty file, or comments alone, says nothing.
      if ('problem' in file && !file.isEmpty) {
        problems.push({ ...file.problem, file: fileNameOf(ref) })
        return { registered: 0, removed: 0, problems }
      }
      const { value, lineOf } = 'document' in file ? file.document : emptyDocument
      const values = value ?? {}
      if (!isObject(values)) {
        problems.push({ file: fileNameOf(ref), line: 1, message: 'a mapping of names to values is needed' })
        return { registered: 0, removed: 0, problems }
      }
      const problem = problemOfValues(attributes, values)
      if (problem !== undefined) {
        const message = problemText(ref, problem.path, problem.message)
        problems.push(problemAt(fileNameOf(ref), problem.path, lineOf, message))
        return { registered: 0, removed: 0, problems }
      }
      try {
        await save(ref, attributes, values)
      } catch (error) {
        if (!isAppError(error) || error.kind !== 'invalid') throw error
        problems.push({ file: fileNameOf(ref), message: error.message })
        return { registered: 0, removed: 0, problems }
      }
      return { registered: 1, removed: 0, problems }
    },

    async unregister(pack) {
      await database.write({ steps: [store.deleteConfig(pack), store.deleteConfigSchema(pack)], facts: [] })
      prepared.delete(pack)
    },

    get(pack, unmasked) {
      const stored = store.findConfig(pack)
      if (stored === undefined) throw configNotFound(pack)
      const values = openValues(pack, stored.values)
      const shown = unmasked
        ? values
        : secretsOf(attributesOf(pack))(values, (secret) => (secret === null ? null : MASK))
      return { id: stored.id, pack, values: shown as Record<string, unknown> }
    },

    async put(pack, given) {
      // Before any other look at it: writing and reading YAML takes 10 µs per value.
      if (textLengthOf(given, MAX_LENGTH) > MAX_LENGTH || valuesIn(given, MAX_VALUES) > MAX_VALUES) {
        throw configInvalid(
          `The configuration of pack "${pack}" is too large: it may have ${MAX_VALUES} values and ${MAX_LENGTH} characters. Write a larger one to its file, then register the pack.`,
        )
      }
      const attributes = attributesOf(pack)
      const stored = store.findConfig(pack)
      // A value that cannot be decrypted matters only where the request keeps it.
      const isNeeded = pathOf(given, MASK) !== undefined
      const before = stored === undefined || !isNeeded ? {} : openValues(pack, stored.values)
      const values = secretsOf(attributes)(given, keepMasked, before) as Record<string, unknown>
      const unknown = pathOf(values, MASK)
      if (unknown !== undefined) {
        const message = `"${MASK}" stands for a value that is stored; there is none in its place`
        throw configInvalid(problemText(pack, unknown, message), ['values', ...unknown])
      }
      const problem = problemOfValues(attributes, values)
      if (problem !== undefined)
        throw configInvalid(problemText(pack, problem.path, problem.message), ['values', ...fieldOf(problem)])
      toStored(pack, attributes, values)
      const text = yamlTextOf(values, MAX_FILE_BYTES)
      if (text === undefined) throw configInvalid(`The configuration of pack "${pack}" is too large for a file`)
      try {
        await replaceSecretFile(join(folder, `${pack}.yaml`), text)
      } catch (error) {
        throw configNotWritten(pack, error)
      }
      await save(pack, attributes, values)
      const remarks = store.remarksOf(pack)
      if (remarks.some(isOfConfig)) {
        const others = remarks.filter((remark) => !isOfConfig(remark))
        await database.write({ steps: [store.setRemarks(pack, others)], facts: [] })
      }
    },
  }

  async function save(pack: string, attributes: ConfigAttributes, values: Record<string, unknown>): Promise<void> {
    const before = store.findConfig(pack)
    // As stored: `21` is not `21.0`, and clients see the order of keys.
    const isSame =
      before !== undefined && canUse(() => writeJson(openValues(pack, before.values)) === writeJson(values))
    const wasSealed = before !== undefined && !before.values.startsWith('{')
    const text = toStored(pack, attributes, values)
    if (!(isSame && wasSealed === !text.startsWith('{'))) {
      await database.write({ steps: [store.putConfig({ id: before?.id ?? newId(), pack, values: text })], facts: [] })
    }
    prepared.delete(pack)
  }
}

/** Whether a remark is about the file of a configuration: others are about files of the pack. */
export const isOfConfig = ({ file }: Pick<FileProblem, 'file'>): boolean => file.startsWith('configs/')

/** Lists, objects and what they hold. Stops counting beyond `max`. */
function valuesIn(value: unknown, max: number): number {
  if (typeof value !== 'object' || value === null) return 1
  let count = 1
  for (const inner of Object.values(value)) {
    count += valuesIn(inner, max - count)
    if (count > max) break
  }
  return count
}

/** Where a value is found first, at any depth. */
function pathOf(value: unknown, wanted: unknown): string[] | undefined {
  if (value === wanted) return []
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const path = pathOf(inner, wanted)
    if (path !== undefined) return [key, ...path]
  }
  return undefined
}

function canUse(check: () => boolean): boolean {
  try {
    return check()
  } catch (error) {
    if (isAppError(error)) return false
    throw error
  }
}

function remembering(decrypt: HostFunction, remember: (plain: unknown) => void): HostFunction {
  return (...args) => {
    const plain = decrypt(...args)
    remember(plain)
    return plain
  }
}

/** Why a text with the marks of a template is none. */
function problemOfTemplate(text: string): string | undefined {
  if (isTemplate(text)) return undefined
  try {
    references(text)
    return 'it is no template'
  } catch (error) {
    if (error instanceof TemplateError) return error.message
    throw error
  }
}

/** Values of encrypted keys are long hexadecimal texts; others are taken as they are. */
const isCipherText = (value: unknown): boolean =>
  typeof value === 'string' && value.length >= 66 && value.length % 2 === 0 && /^[0-9A-Fa-f]+$/.test(value)
