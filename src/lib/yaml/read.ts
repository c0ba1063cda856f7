/** The values of a YAML 1.1 document as a reader in Python gets them; in place of what JSON lacks, the nearest that it has. */
import { floatText, JsonNumber, keysOf, rememberOrder, setOwn } from '../json/index.ts'
import {
  composeYaml,
  type ListNode,
  type MappingNode,
  type NodeLimits,
  type ScalarNode,
  type YamlNode,
} from './nodes.ts'
import { readBool, readFloat, readInt, readTimestamp, typeOfPlain, type ScalarValue } from './scalars.ts'
import { tooManyChars, tooManyValues, YamlError } from './tokens.ts'

export interface ReadLimits extends NodeLimits {
  /** Mappings that `<<` names, and the keys that they bring in; 0 refuses `<<`. */
  maxMergeKeys: number
  /** Characters of keys and values, aliases counted as often as used. */
  maxChars: number
}

/** Read all the same. */
export interface YamlWarning {
  readonly message: string
  /** What svc does. */
  readonly effect: string
  readonly line: number
}

export interface YamlValue {
  readonly value: unknown
  readonly node: YamlNode
  readonly warnings: readonly YamlWarning[]
}

/**
 * Reads the only document of a text; undefined when it has none.
 *
 * Keys, dates and bytes become text, sets lists, and numbers that JSON lacks null. Of equal keys the last one counts.
 *
 * @throws YamlError
 */
export function readYamlValue(text: string, limits: ReadLimits): YamlValue | undefined {
  const node = composeYaml(text, limits)
  return node === undefined ? undefined : readYamlNode(node, limits)
}

/** The limits and the number of nodes bound the work, however often nodes refer to each other. @throws YamlError */
export function readYamlNode(node: YamlNode, limits: ReadLimits): YamlValue {
  const reader = new Reader(limits)
  const value = reader.read(node, 0)
  return { value, node, warnings: reader.warnings }
}

const coreTags = 'tag:yaml.org,2002:'
const MAX_WARNINGS = 100

/** Keys of a mapping that are no text to YAML, such as `1`, `yes` and `null`. */
const nonTextKeys = new WeakMap<object, string[]>()

/** @param object that was read */
export function nonTextKeysOf(object: object): readonly string[] {
  return nonTextKeys.get(object) ?? []
}

export function rememberNonText(object: object, name: string): void {
  const names = nonTextKeys.get(object)
  if (names === undefined) nonTextKeys.set(object, [name])
  else names.push(name)
}

type Pair = MappingNode['pairs'][number]

class Reader {
  readonly warnings: YamlWarning[] = []
  readonly #limits: ReadLimits
  #values = 0
  #chars = 0
  #mergedKeys = 0

  constructor(limits: ReadLimits) {
    this.#limits = limits
  }

  read(node: YamlNode, depth: number): unknown {
    this.#values += 1
    const { maxValues, maxDepth } = this.#limits
    if (this.#values > maxValues) throw new YamlError(tooManyValues(maxValues), node.line)
    if (depth > maxDepth) throw new YamlError(`values are nested more than ${maxDepth} deep`, node.line)
    const kind = node.tag?.startsWith(coreTags) === true ? node.tag.slice(coreTags.length) : node.tag
    switch (node.kind) {
      case 'scalar':
        return this.#scalar(node, kind)
      case 'list':
        return this.#list(node, kind, depth)
      case 'mapping':
        return this.#mapping(node, kind, depth)
    }
  }

  #warn(message: string, effect: string, line: number): void {
    if (this.warnings.length < MAX_WARNINGS) this.warnings.push({ message, effect, line })
    else if (this.warnings.length === MAX_WARNINGS)
      this.warnings.push({ message: 'there are more warnings', effect: `svc lists ${MAX_WARNINGS} of a file`, line })
  }

  #scalar(node: ScalarNode, tag: string | undefined): unknown {
    const { text, line } = node
    this.#chars += text.length
    const { maxChars } = this.#limits
    if (this.#chars > maxChars) throw new YamlError(tooManyChars(maxChars), line)
    const type = tag ?? (node.isPlain ? typeOfPlain(text) : 'str')
    const read = (value: ScalarValue): unknown => {
      if ('problem' in value) throw new YamlError(value.problem, line)
      return value.value
    }
    switch (type) {
      case 'str':
        return text
      case 'null':
        return null
      case 'bool':
        return read(readBool(text))
      case 'int':
        return read(readInt(text))
      case 'float': {
        const value = read(readFloat(text))
        if (value === null) this.#warn(`${text} is not a number JSON has`, 'svc reads null', line)
        return value
      }
      case 'timestamp':
        return read(readTimestamp(text))
      case 'binary':
        return this.#binary(text, line)
      case 'merge':
      case 'value':
      case 'indicator':
        throw new YamlError(`${text} alone has a meaning of its own in YAML; put it in quotes`, line)
      default:
        return this.#unknownTag(node, tag)
    }
  }

  #binary(text: string, line: number): string {
    const base64 = readBase64(text)
    if (base64 === undefined) throw new YamlError('this is no base64', line)
    this.#warn('JSON has no bytes (!!binary)', 'svc reads them as text', line)
    return Buffer.from(base64, 'base64').toString('utf8')
  }

  #unknownTag({ line }: YamlNode, tag: string | undefined): never {
    throw new YamlError(
      `the tag ${shortened(tag ?? '')} is not allowed for this value; use text, numbers, lists and mappings`,
      line,
    )
  }

  #list(node: ListNode, tag: string | undefined, depth: number): unknown {
    if (tag === 'omap' || tag === 'pairs') {
      return node.items.map((item) => {
        const [pair] = item.kind === 'mapping' && item.pairs.length === 1 ? item.pairs : []
        if (pair === undefined) throw new YamlError('each item is one key with its value', item.line)
        return pair.map((part) => this.read(part, depth + 2))
      })
    }
    if (tag !== undefined && tag !== 'seq' && tag !== '!') return this.#unknownTag(node, tag)
    return node.items.map((item) => this.read(item, depth + 1))
  }

  #mapping(node: MappingNode, tag: string | undefined, depth: number): unknown {
    if (tag !== undefined && tag !== 'map' && tag !== 'set' && tag !== '!') return this.#unknownTag(node, tag)
    const object: Record<string, unknown> = {}
    const keys: string[] = []
    const lines = new Map<string, number>()
    const own = new Set(node.pairs)
    for (const pair of this.#merged(node)) {
      const [key, value] = pair
      const { name, isText } = this.#key(key, depth)
      if (!Object.hasOwn(object, name)) {
        keys.push(name)
        if (!isText) rememberNonText(object, name)
      } else if (own.has(pair) && lines.has(name)) {
        this.#warn(
          `found duplicate key "${shortened(name)}"`,
          `this one counts, not that of line ${lines.get(name) ?? 0}`,
          key.line,
        )
      }
      if (own.has(pair)) lines.set(name, key.line)
      setOwn(object, name, this.read(value, depth + 1))
    }
    rememberOrder(object, keys)
    return tag === 'set' ? [...keysOf(object)] : object
  }

  #key(key: YamlNode, depth: number): { name: string; isText: boolean } {
    if (key.kind !== 'scalar') throw new YamlError('a key is text, not a list or a mapping', key.line)
    // `=` is a key like any other.
    if (key.tag === undefined && key.isPlain && key.text === '=') return { name: '=', isText: true }
    const value = this.read(key, depth + 1)
    return { name: nameOf(value), isText: typeof value === 'string' }
  }

  /** The pairs of a mapping after those that `<<` brings in. */
  #merged(node: MappingNode): Pair[] {
    const brought: Pair[] = []
    const others: Pair[] = []
    for (const pair of node.pairs) {
      if (!isMerge(pair[0])) {
        others.push(pair)
        continue
      }
      // What brings in nothing counts too: mappings that bring in each other twice are doubled on each level.
      if (pair[1].kind === 'list') this.#countMerged(1, node)
      for (const source of this.#sources(pair[1])) {
        this.#countMerged(1, node)
        const keys = this.#merged(source)
        this.#countMerged(keys.length, node)
        brought.push(...keys)
      }
    }
    return [...brought, ...others]
  }

  #countMerged(keys: number, { line }: YamlNode): void {
    this.#mergedKeys += keys
    const { maxMergeKeys } = this.#limits
    if (this.#mergedKeys <= maxMergeKeys) return
    const message =
      maxMergeKeys === 0
        ? 'the merge key "<<" is not supported: write the keys out'
        : `"<<" brings in more than ${maxMergeKeys} mappings and keys`
    throw new YamlError(message, line)
  }

  /** The last one counts most. */
  #sources(node: YamlNode): MappingNode[] {
    const given = node.kind === 'list' ? node.items.toReversed() : [node]
    return given.map((each) => {
      if (each.kind !== 'mapping') throw new YamlError('"<<" needs a mapping, or a list of mappings', each.line)
      return each
    })
  }
}

/** What JSON of Python calls a key. */
function nameOf(key: unknown): string {
  if (!(key instanceof JsonNumber))
    return typeof key === 'number' && !Number.isInteger(key) ? floatText(key) : String(key)
  return /^-?\d+$/.test(key.text) ? String(BigInt(key.text)) : floatText(Number(key.text))
}

/** As Python decodes it: other ASCII characters do not count, and nothing after the padding. */
function readBase64(text: string): string | undefined {
  // eslint-disable-next-line no-control-regex
  if (/[^\0-\x7f]/.test(text)) return undefined
  let data = ''
  let pads = 0
  for (const character of text.replace(/[^A-Za-z0-9+/=]/g, '')) {
    const given = data.length % 4
    if (character !== '=') {
      data += character
      pads = 0
    } else if (given >= 2 && given + ++pads >= 4) return data
  }
  return data.length % 4 === 0 ? data : undefined
}

const MAX_SHOWN_CHARS = 100

const shortened = (text: string): string =>
  text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text

function isMerge(key: YamlNode): boolean {
  if (key.kind !== 'scalar') return false
  return key.tag === `${coreTags}merge` || (key.tag === undefined && key.isPlain && key.text === '<<')
}
