/** YAML 1.1 for templates, and writing YAML. Files are read by `src/lib/yaml`. Numbers are exact. */
import {
  boolYaml11Tag,
  defineMappingTag,
  defineScalarTag,
  DUMP_SCHEMA,
  floatYaml11Tag,
  intYaml11Tag,
  NOT_RESOLVED,
  YAML11_SCHEMA,
  type ScalarTagDefinition,
} from 'js-yaml'
import { readInt, rememberNonText, typeOfPlain } from '../yaml/index.ts'
import { JsonNumber, keysOf, JsonNumberError, parseNumber, rememberOrder, setOwn } from '../json/index.ts'

const boolTag = defineScalarTag('tag:yaml.org,2002:bool', {
  implicit: true,
  implicitFirstChars: boolYaml11Tag.implicitFirstChars,
  resolve: (source, isExplicit, tagName) =>
    source.length === 1 ? NOT_RESOLVED : boolYaml11Tag.resolve(source, isExplicit, tagName),
  identify: (data) => typeof data === 'boolean',
})

const decimalFloat = /^[-+]?(?:[0-9][0-9_]*)?\.[0-9_]*(?:[eE][-+][0-9]+)?$/

const intTag = defineScalarTag<unknown>('tag:yaml.org,2002:int', {
  implicit: true,
  implicitFirstChars: intYaml11Tag.implicitFirstChars,
  resolve(source, isExplicit) {
    if (!isExplicit && typeOfPlain(source) !== 'int') return NOT_RESOLVED
    const read = readInt(source)
    if ('value' in read) return read.value
    if (isExplicit) return NOT_RESOLVED
    throw new JsonNumberError(read.problem)
  },
  identify: () => false,
})

const floatTag = defineScalarTag<unknown>('tag:yaml.org,2002:float', {
  implicit: true,
  implicitFirstChars: floatYaml11Tag.implicitFirstChars,
  resolve(source, isExplicit, tagName) {
    if (!isExplicit && typeOfPlain(source) !== 'float') return NOT_RESOLVED
    const value = floatYaml11Tag.resolve(source, isExplicit, tagName)
    return (decimalFloat.test(source) ? parseNumber(source.replaceAll('_', '')) : undefined) ?? value
  },
  identify: () => false,
})

interface Mapping {
  object: Record<string, unknown>
  keys: string[]
}

/** Keys in the order of the text; exact numbers among them become text, as the others do. */
const mapTag = defineMappingTag<Mapping, Record<string, unknown>>('tag:yaml.org,2002:map', {
  create: () => ({ object: {}, keys: [] }),
  addPair({ object, keys }, key, value) {
    if (isCollection(key)) return 'a key must be text'
    const name = String(key)
    if (!Object.hasOwn(object, name)) keys.push(name)
    if (typeof key !== 'string') rememberNonText(object, name)
    setOwn(object, name, value)
    return ''
  },
  has: ({ object }, key) => !isCollection(key) && Object.hasOwn(object, String(key)),
  keys: (object) => keysOf(object),
  get: (object, key) => (Object.hasOwn(object, String(key)) ? object[String(key)] : null),
  finalize({ object, keys }) {
    rememberOrder(object, keys)
    return object
  },
  identify: () => false,
})

const isCollection = (key: unknown): boolean => typeof key === 'object' && key !== null && !(key instanceof JsonNumber)

export const pythonYamlSchema = YAML11_SCHEMA.withTags(boolTag, intTag, floatTag, mapTag)

/** YAML 1.1 knows a float by its point and wants a sign in the exponent: `1.e+3`. */
function yamlFloat(json: string): string {
  return json.replace(/^(-?\d+)(?=[eE])/, '$1.').replace(/([eE])(?=\d)/, '$1+')
}

/** For `dump`: writes `JsonNumber` and `bigint` exactly, and quotes text that a reader of YAML takes for a number. */
export const exactDumpSchema = DUMP_SCHEMA.withTags(
  defineScalarTag<unknown>('tag:yaml.org,2002:int', {
    ...scalarTag('tag:yaml.org,2002:int'),
    identify: (data) =>
      typeof data === 'bigint' || (data instanceof JsonNumber ? data.isWhole : intYaml11Tag.identify(data)),
    represent: String,
  }),
  defineScalarTag<unknown>('tag:yaml.org,2002:float', {
    ...scalarTag('tag:yaml.org,2002:float'),
    identify: (data) => (data instanceof JsonNumber ? !data.isWhole : floatYaml11Tag.identify(data)),
    represent: (data, ...rest) =>
      data instanceof JsonNumber ? yamlFloat(data.text) : floatYaml11Tag.represent(data, ...rest),
  }),
)

/** As `exactDumpSchema`, but leaves the single letters `y` and `n` without quotes. */
export const pythonDumpSchema = exactDumpSchema.withTags(boolTag)

function scalarTag(name: string): ScalarTagDefinition {
  const tag = DUMP_SCHEMA.tags.find(({ tagName }) => tagName === name)
  if (tag?.nodeKind !== 'scalar') throw new Error(`js-yaml has no scalar tag ${name}`)
  return tag
}
