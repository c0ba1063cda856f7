import { dump, loadAll, realMapTag, Schema, YAMLException } from 'js-yaml'
import { floatText, JsonNumber } from '../../json/index.ts'
import { pythonDumpSchema, pythonYamlSchema } from '../../text/index.ts'
import { filterError, limitError, typeError } from '../error.ts'
import { iterate } from '../iteration.ts'
import type { Budget } from '../limits.ts'
import { isMapping, mappingEntries } from '../mapping.ts'
import {
  adopt,
  Dict,
  Float,
  isFloatValue,
  isIntegerValue,
  isList,
  toNumber,
  RangeValue,
  Sequence,
  typeNameOf,
  Undefined,
  type Value,
} from '../values.ts'

const MAX_YAML_LENGTH = 1024 * 1024
const MAX_ALIASES = 100

// Times stay text: templates have no date type.
const readTags = pythonYamlSchema.tags.filter((tag) => tag.tagName !== 'tag:yaml.org,2002:timestamp')
const readSchema = new Schema(readTags).withTags(realMapTag)
/** Parses one YAML document (version 1.1, safe types only); a text without any is None. */
export function readYaml(text: string, budget: Budget): Value {
  if (text.length > MAX_YAML_LENGTH) throw limitError(`the YAML text is longer than ${MAX_YAML_LENGTH} characters`)
  budget.work(text.length)
  let documents: unknown[]
  try {
    documents = loadAll(text, { schema: readSchema, maxAliases: MAX_ALIASES, json: true })
  } catch (error) {
    if (error instanceof RangeError) throw limitError('the YAML text is nested too deeply')
    // The reason may quote the text, which may be secret.
    const { mark, reason = '' } = error instanceof YAMLException ? error : {}
    throw filterError(`the text is not valid YAML${mark == null ? '' : ` (line ${mark.line + 1})`}`, classOf(reason))
  }
  if (documents.length > 1) throw filterError('the text holds more than one YAML document', 'ComposerError')
  return fromYaml(documents[0] ?? null, budget, 0)
}

/** The error of Python's parser: of the text itself, of its structure, of its aliases, of its types. */
function classOf(reason: string): string {
  if (reason.includes('unidentified alias')) return 'ComposerError'
  if (/^unknown \w+ tag/.test(reason)) return 'ConstructorError'
  const isOfText = /mapping entry|tab characters|quoted scalar|escape sequence|deficient indentation|line break/.test(
    reason,
  )
  return isOfText ? 'ScannerError' : 'ParserError'
}

function fromYaml(value: unknown, budget: Budget, depth: number): Value {
  budget.visit()
  budget.depth(depth)
  if (value instanceof Map) {
    const dict = new Dict()
    for (const [key, item] of value) dict.set(fromYaml(key, budget, depth + 1), fromYaml(item, budget, depth + 1))
    return dict
  }
  if (value instanceof Set) return Array.from(value, (item) => fromYaml(item, budget, depth + 1))
  if (isList(value)) return value.map((item) => fromYaml(item, budget, depth + 1))
  if (value instanceof Uint8Array) throw filterError('binary values in YAML cannot be used in a template')
  return adopt(value)
}

/** Writes YAML in block style with sorted keys. */
export function writeYaml(value: Value, indent: number | undefined, budget: Budget): string {
  const text = dump(toYaml(value, budget, 0), {
    schema: pythonDumpSchema,
    sortKeys: true,
    seqNoIndent: true,
    noRefs: true,
    ...(indent === undefined ? {} : { indent }),
  })
  budget.text(text.length)
  return text
}

function toYaml(value: Value, budget: Budget, depth: number): unknown {
  budget.visit()
  budget.depth(depth)
  if (value instanceof Undefined) value.raise()
  if (value === null || typeof value === 'boolean') return value
  if (typeof value === 'string') {
    budget.work(value.length)
    return value
  }
  if (isIntegerValue(value)) return value
  if (isFloatValue(value)) return yamlFloat(value)
  if (isMapping(value)) {
    const result: Record<string, unknown> = Object.create(null)
    for (const [key, item] of mappingEntries(value, (count) => budget.foresee(count))) {
      result[yamlKey(key)] = toYaml(item, budget, depth + 1)
    }
    return result
  }
  if (isList(value) || value instanceof Sequence || value instanceof RangeValue) {
    return iterate(value, budget).map((item) => toYaml(item, budget, depth + 1))
  }
  throw typeError(`a value of type ${typeNameOf(value)} cannot be written as YAML`)
}

function yamlFloat(value: number | Float): unknown {
  const number = toNumber(value)
  if (!Number.isFinite(number)) return number
  const text = (value instanceof Float ? value.source : undefined) ?? floatText(number)
  // As Python writes it: `1.0e-07`.
  return new JsonNumber(text.replace(/^(-?\d+)(?=e)/i, '$1.0'))
}

function yamlKey(key: Value): string {
  if (typeof key === 'string') return key
  if (key === null || typeof key === 'boolean' || isIntegerValue(key)) return String(key)
  throw typeError(`keys must be text, whole numbers, booleans or None, not ${typeNameOf(key)}`)
}
