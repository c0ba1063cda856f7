/** StackStorm's names in the expressions of workflows and action chains. */
import { isObject } from '../../lib/schema/index.ts'

const blocks: readonly (readonly [open: string, close: string])[] = [
  ['<%', '%>'],
  ['{{', '}}'],
  ['{%', '%}'],
]

const functionName = /\bst2kv\b(?=\s*[.([])/g
const member = /(\bctx\(\s{0,20}\)\s{0,20}\.\s{0,20})st2\b/g
const argument = /(\bctx\(\s{0,20}(["']?))st2(\2\s{0,20}\))/g

/** A definition with our names, and the way back. */
export interface OurDefinition {
  readonly text: string
  /** What quotes the definition, a text or a record with texts, with the expressions as its author has written them. */
  readonly asWritten: <T>(quoting: T) => T
}

export const asItIs = (text: string): OurDefinition => ({ text, asWritten: (quoting) => quoting })

/**
 * A definition with our names in its expressions: `<% ctx().st2.user %>` is `<% ctx().svc.user %>`. Whatever stands
 * outside of expressions stays as it is, and every line and column too.
 */
export function withOurExpressions(text: string): OurDefinition {
  if (!text.includes('st2')) return asItIs(text)
  const written = new Map<string, string>()
  const ours = withBlocks(text, (block) => {
    const own = inBlock(block)
    if (own !== block) written.set(own, block)
    return own
  })
  if (written.size === 0) return asItIs(text)
  return {
    text: ours,
    asWritten: (quoting) => withTexts(quoting, (quoted) => withBlocks(quoted, (block) => written.get(block) ?? block)),
  }
}

/** A value of JSON with other texts. */
function withTexts<T>(value: T, change: (text: string) => string): T {
  const changed = (inner: unknown): unknown => {
    if (typeof inner === 'string') return change(inner)
    if (Array.isArray(inner)) return inner.map(changed)
    // Numbers are objects of classes.
    if (!isObject(inner) || Object.getPrototypeOf(inner) !== Object.prototype) return inner
    return Object.fromEntries(Object.entries(inner).map(([name, one]) => [name, changed(one)]))
  }
  return changed(value) as T // the same but for its texts
}

/** A text with other expressions. */
function withBlocks(text: string, change: (block: string) => string): string {
  let result = ''
  let at = 0
  // Where each kind of block opens next; -1: nowhere any more.
  const opens = blocks.map(([open]) => text.indexOf(open))
  for (;;) {
    let next = -1
    for (const [kind, [open]] of blocks.entries()) {
      const known = opens[kind] ?? -1
      if (known !== -1 && known < at) opens[kind] = text.indexOf(open, at)
      const place = opens[kind] ?? -1
      if (place !== -1 && (next === -1 || place < (opens[next] ?? -1))) next = kind
    }
    const start = next === -1 ? -1 : (opens[next] ?? -1)
    if (start === -1) return result + text.slice(at)
    const close = blocks[next]?.[1] ?? ''
    const end = text.indexOf(close, start + 2)
    if (end === -1) {
      // No block of this kind ends, so none is one.
      opens[next] = -1
      continue
    }
    result += text.slice(at, start) + change(text.slice(start, end + 2))
    at = end + 2
  }
}

function inBlock(block: string): string {
  if (!block.includes('st2')) return block
  return block.replace(functionName, 'svckv').replace(member, '$1svc').replace(argument, '$1svc$3')
}
