/** What a server says about a query that it answers, but not as the client may expect: the header `Warning`. */
import { adviceOnQueryValue, nameHere, ourName } from '../core/compat/index.ts'
import { closestWords } from '../lib/text/index.ts'
import type { QueryParameter } from './route.ts'

/** Read before a route is known, or by nobody but a client's own tools. */
const readElsewhere: ReadonlySet<string> = new Set(['x-auth-token', 'svc-api-key'])

const MAX_NAMED = 5

/**
 * @param isCompatible `[compat] stackstorm`: StackStorm's names are accepted
 * @returns the value of the header; undefined: there is nothing to say
 */
export function queryWarning(
  path: string,
  declared: Readonly<Record<string, QueryParameter>>,
  given: URLSearchParams,
  isCompatible: boolean,
): string | undefined {
  if (given.size === 0) return undefined
  const sentences: string[] = []
  const unknown = [...new Set(given.keys())].filter(
    (name) => !Object.hasOwn(declared, name) && !readElsewhere.has(name),
  )
  for (const name of unknown.slice(0, MAX_NAMED)) {
    const [meant] = closestWords(name, Object.keys(declared), 2)
    const own = ourName('query', name)
    const advice = own !== undefined ? ` ${nameHere(own)}` : meant === undefined ? '' : ` Did you mean "${meant}"?`
    sentences.push(`Unknown query parameter "${name}", ignored.${advice}`)
  }
  if (unknown.length > MAX_NAMED) sentences.push(`${unknown.length - MAX_NAMED} more unknown query parameters ignored.`)
  if (!isCompatible) {
    for (const name of Object.keys(declared)) {
      const advice = adviceOnQueryValue(path, name, given.get(name) ?? '')
      if (advice !== '') sentences.push(`"${given.get(name) ?? ''}" in ${name} names nothing.${advice}`)
    }
  }
  return sentences.length === 0 ? undefined : `199 svc "${quoted(sentences.join(' '))}"`
}

/** As RFC 9110 wants it in quotes: printable ASCII, the rest as question marks. */
function quoted(text: string): string {
  return text
    .slice(0, 1000)
    .replace(/[^\x20-\x7e]/g, '?')
    .replace(/["\\]/g, '\\$&')
}
