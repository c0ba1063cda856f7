/** The nodes of a YAML document, composed from its tokens. */
import { tokenize, YamlError, type Token, type TokenKind } from './tokens.ts'

/** `line` counts from 1. `tag` is undefined where the text has none. */
export type YamlNode = ScalarNode | ListNode | MappingNode

export interface ScalarNode {
  readonly kind: 'scalar'
  readonly tag: string | undefined
  readonly text: string
  readonly isPlain: boolean
  readonly line: number
}

export interface ListNode {
  readonly kind: 'list'
  readonly tag: string | undefined
  readonly items: YamlNode[]
  readonly line: number
}

export interface MappingNode {
  readonly kind: 'mapping'
  readonly tag: string | undefined
  readonly pairs: [key: YamlNode, value: YamlNode][]
  readonly line: number
}

/** An alias is loaded by reference, so a few of them can stand for very many nodes. */
export interface NodeLimits {
  maxDepth: number
  maxAliases: number
  /** Values, aliases counted as often as used. */
  maxValues: number
}

/**
 * The only document of a text; undefined when it has none.
 *
 * @throws YamlError
 */
export function composeYaml(text: string, limits: NodeLimits): YamlNode | undefined {
  return new Composer(tokenize(text, limits), limits).compose()
}

const coreTags = 'tag:yaml.org,2002:'
const defaultHandles: ReadonlyMap<string, string> = new Map([
  ['!', '!'],
  ['!!', coreTags],
])

class Composer {
  readonly #tokens: readonly Token[]
  readonly #limits: NodeLimits
  #at = 0
  #depth = 0
  #aliases = 0
  readonly #anchors = new Map<string, YamlNode | 'unfinished'>()
  #handles: ReadonlyMap<string, string> = defaultHandles

  constructor(tokens: readonly Token[], limits: NodeLimits) {
    this.#tokens = tokens
    this.#limits = limits
  }

  get #token(): Token {
    const token = this.#tokens[this.#at]
    if (token === undefined) throw new Error('the tokens of a text end with its end')
    return token
  }

  #is(...kinds: readonly TokenKind[]): boolean {
    return kinds.includes(this.#token.kind)
  }

  #take(kind: TokenKind): boolean {
    if (!this.#is(kind)) return false
    this.#at += 1
    return true
  }

  #fail(message: string, { line } = this.#token): never {
    throw new YamlError(message, line)
  }

  compose(): YamlNode | undefined {
    if (this.#is('text end')) return undefined
    const isMarked = this.#beginDocument()
    const node =
      isMarked && this.#is('document start', 'document end', 'text end', 'yaml directive', 'tag directive')
        ? this.#empty()
        : this.#node(true)
    while (this.#take('document end')) {
      // The document may be closed several times.
    }
    if (this.#is('document start', 'yaml directive', 'tag directive')) {
      return this.#fail('one YAML document is needed, and here another one begins')
    }
    if (!this.#is('text end')) this.#fail('this does not belong to the value before it; check the indentation')
    return node
  }

  /** @returns whether the document has a mark at its beginning */
  #beginDocument(): boolean {
    const handles = new Map(defaultHandles)
    let hasVersion = false
    let isMarked = false
    for (; this.#is('yaml directive', 'tag directive'); this.#at += 1) {
      const { kind, text, handle } = this.#token
      if (kind === 'yaml directive') {
        if (hasVersion) this.#fail('the version of YAML is given twice')
        if (!/^1\.[12]$/.test(text)) this.#fail(`YAML ${text} is not supported; svc reads YAML 1.1`)
        hasVersion = true
      } else {
        handles.set(handle, text)
      }
      isMarked = true
    }
    this.#handles = handles
    if (this.#take('document start')) return true
    if (isMarked) this.#fail('--- is missing after the directives')
    return false
  }

  /** @param mayBeLoose a list whose items are not indented can begin here */
  #node(isBlock: boolean, mayBeLoose = false): YamlNode {
    const { line } = this.#token
    if (this.#is('alias')) return this.#alias()
    let anchor: string | undefined
    let tag: string | undefined
    for (
      ;
      this.#is(
        ...(anchor === undefined ? (['anchor'] as const) : []),
        ...(tag === undefined ? (['tag'] as const) : []),
      );
      this.#at += 1
    ) {
      const { kind, text, handle } = this.#token
      if (kind === 'anchor') anchor = text
      else tag = this.#tagOf(text, handle)
    }
    if (anchor !== undefined) {
      if (this.#anchors.has(anchor)) this.#fail(`the anchor &${anchor} is there twice`)
      this.#anchors.set(anchor, 'unfinished')
    }
    const node = this.#content(isBlock, mayBeLoose, tag, line, anchor !== undefined || tag !== undefined)
    if (anchor !== undefined) this.#anchors.set(anchor, node)
    return node
  }

  #content(
    isBlock: boolean,
    mayBeLoose: boolean,
    tag: string | undefined,
    line: number,
    hasProperties: boolean,
  ): YamlNode {
    if (mayBeLoose && this.#is('entry')) return this.#list(tag, line, false)
    const { kind, text, isPlain } = this.#token
    switch (kind) {
      case 'scalar':
        this.#at += 1
        // The tag `!` means none, also where there are quotes.
        return { kind: 'scalar', tag: tag === '!' ? undefined : tag, text, isPlain: isPlain || tag === '!', line }
      case '[':
        this.#at += 1
        return this.#flowList(tag, line)
      case '{':
        this.#at += 1
        return this.#flowMapping(tag, line)
      case 'block sequence':
        if (isBlock) {
          this.#at += 1
          return this.#list(tag, line, true)
        }
        break
      case 'block mapping':
        if (isBlock) {
          this.#at += 1
          return this.#mapping(tag, line)
        }
        break
      default:
    }
    if (hasProperties)
      return { kind: 'scalar', tag: tag === '!' ? `${coreTags}str` : tag, text: '', isPlain: true, line }
    return this.#fail(describeUnexpected(kind))
  }

  #alias(): YamlNode {
    const { text } = this.#token
    const node = this.#anchors.get(text)
    if (node === undefined)
      this.#fail(`there is no anchor &${text} before this alias; put other text that begins with * in quotes`)
    if (node === 'unfinished') this.#fail(`the alias *${text} stands within the value that it stands for`)
    this.#aliases += 1
    if (this.#aliases > this.#limits.maxAliases) this.#fail(`there are more than ${this.#limits.maxAliases} aliases`)
    this.#at += 1
    return node
  }

  #tagOf(text: string, handle: string): string {
    if (handle === '') return text
    const prefix = this.#handles.get(handle)
    if (prefix === undefined) this.#fail(`the tag handle ${handle} is not declared`)
    return prefix + text
  }

  #empty(): ScalarNode {
    return { kind: 'scalar', tag: undefined, text: '', isPlain: true, line: this.#token.line }
  }

  #nest<T>(work: () => T): T {
    this.#depth += 1
    if (this.#depth > this.#limits.maxDepth) this.#fail(`values are nested more than ${this.#limits.maxDepth} deep`)
    const result = work()
    this.#depth -= 1
    return result
  }

  /** @param isIndented an end is marked */
  #list(tag: string | undefined, line: number, isIndented: boolean): ListNode {
    const items: YamlNode[] = []
    this.#nest(() => {
      while (this.#take('entry')) {
        const isEmpty = isIndented ? this.#is('entry', 'block end') : this.#is('entry', 'key', 'value', 'block end')
        items.push(isEmpty ? this.#empty() : this.#node(true))
      }
      if (isIndented && !this.#take('block end'))
        this.#fail('an item of a list begins with "- " here; check the indentation')
    })
    return { kind: 'list', tag, items, line }
  }

  #mapping(tag: string | undefined, line: number): MappingNode {
    const pairs: MappingNode['pairs'] = []
    const isEnd = (): boolean => this.#is('key', 'value', 'block end')
    this.#nest(() => {
      while (this.#take('key')) {
        const key = isEnd() ? this.#empty() : this.#node(true, true)
        const value = this.#take('value') && !isEnd() ? this.#node(true, true) : this.#empty()
        pairs.push([key, value])
      }
      if (!this.#take('block end')) this.#fail('a key with a colon is needed here; check the indentation')
    })
    return { kind: 'mapping', tag, pairs, line }
  }

  #flowList(tag: string | undefined, line: number): ListNode {
    const items: YamlNode[] = []
    this.#nest(() => {
      for (let isFirst = true; !this.#is(']'); isFirst = false) {
        if (!isFirst && !this.#take(',')) this.#fail('a comma or ] is missing')
        if (this.#is(']')) break
        items.push(this.#is('key') ? this.#singlePair() : this.#node(false))
      }
    })
    this.#at += 1
    return { kind: 'list', tag, items, line }
  }

  /** `[a: 1]` */
  #singlePair(): MappingNode {
    const { line } = this.#token
    this.#at += 1
    return this.#nest(() => {
      const isEmpty = this.#is('value', ',', ']')
      const key = isEmpty ? this.#empty() : this.#node(false)
      // Libyaml steps over what stands in place of the key: `[? ,]` is a pair of nothing, `[?]` is not closed.
      if (isEmpty) this.#at += 1
      const value = this.#take('value') && !this.#is(',', ']') ? this.#node(false) : this.#empty()
      return { kind: 'mapping', tag: undefined, pairs: [[key, value]], line }
    })
  }

  #flowMapping(tag: string | undefined, line: number): MappingNode {
    const pairs: MappingNode['pairs'] = []
    this.#nest(() => {
      for (let isFirst = true; !this.#is('}'); isFirst = false) {
        if (!isFirst && !this.#take(',')) this.#fail('a comma or } is missing')
        if (this.#is('}')) break
        if (!this.#take('key')) {
          pairs.push([this.#node(false), this.#empty()])
          continue
        }
        const key = this.#is('value', ',', '}') ? this.#empty() : this.#node(false)
        const value = this.#take('value') && !this.#is(',', '}') ? this.#node(false) : this.#empty()
        pairs.push([key, value])
      }
    })
    this.#at += 1
    return { kind: 'mapping', tag, pairs, line }
  }
}

function describeUnexpected(kind: TokenKind): string {
  if (kind === 'text end') return 'a value is missing at the end'
  return kind.length === 1 ? `a value cannot begin with ${kind}; put it in quotes` : 'a value is missing here'
}
