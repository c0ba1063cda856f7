/** StackStorm's names in the expressions of workflows and action chains. */

const blocks: readonly (readonly [open: string, close: string])[] = [
  ['<%', '%>'],
  ['{{', '}}'],
  ['{%', '%}'],
]

const functionName = /\bst2kv\b(?=\s*[.([])/g
const member = /(\bctx\(\s{0,20}\)\s{0,20}\.\s{0,20})st2\b/g
const argument = /(\bctx\(\s{0,20}(["']?))st2(\2\s{0,20}\))/g

/**
 * A definition with our names in its expressions: `<% ctx().st2.user %>` is `<% ctx().svc.user %>`. Whatever stands
 * outside of expressions stays as it is, and every line and column too.
 */
export function withOurExpressions(text: string): string {
  if (!text.includes('st2')) return text
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
    result += text.slice(at, start) + inBlock(text.slice(start, end + 2))
    at = end + 2
  }
}

function inBlock(block: string): string {
  if (!block.includes('st2')) return block
  return block.replace(functionName, 'svckv').replace(member, '$1svc').replace(argument, '$1svc$3')
}
