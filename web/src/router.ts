/** The address is what is shown: everything that somebody may want to send to a colleague stands behind the `#`. */
import { useEffect, useState } from 'preact/hooks'

export interface Location {
  /** Parts of the path, decoded: `#/history/65f0/general` is `history`, `65f0`, `general`. */
  path: readonly string[]
  query: URLSearchParams
}

/** @param hash with or without its `#` */
export function parseLocation(hash: string): Location {
  const text = hash.replace(/^#/, '')
  const mark = text.indexOf('?')
  const path = (mark === -1 ? text : text.slice(0, mark)).split('/').filter((part) => part !== '')
  return { path: path.map(decode), query: new URLSearchParams(mark === -1 ? '' : text.slice(mark + 1)) }
}

/** @param query what is undefined or empty is left out */
export function hrefOf(
  path: readonly string[],
  query: Record<string, string | undefined> | URLSearchParams = {},
): string {
  const search = new URLSearchParams()
  const pairs = query instanceof URLSearchParams ? [...query] : Object.entries(query)
  for (const [name, value] of pairs) if (value !== undefined && value !== '') search.append(name, value)
  const text = search.toString()
  return `#/${path.map(encodeURIComponent).join('/')}${text === '' ? '' : `?${text}`}`
}

/** @param options.replace the address before is not one to come back to, such as one letter less in a search */
export function navigate(href: string, options: { replace?: boolean } = {}): void {
  if (href === location.hash) return
  if (options.replace === true) {
    history.replaceState(null, '', href)
    // The browser tells of no change that a script has made.
    window.dispatchEvent(new HashChangeEvent('hashchange'))
  } else location.hash = href
}

/** Changes the query of the address that is shown; the path stays. An empty value removes its name. */
export function setQuery(values: Record<string, string | undefined>, options: { replace?: boolean } = {}): void {
  const { path, query } = parseLocation(location.hash)
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === '') query.delete(name)
    else query.set(name, value)
  }
  navigate(hrefOf(path, query), options)
}

export function useLocation(): Location {
  const [hash, setHash] = useState(location.hash)
  useEffect(() => {
    const update = (): void => setHash(location.hash)
    update()
    window.addEventListener('hashchange', update)
    return () => window.removeEventListener('hashchange', update)
  }, [])
  return parseLocation(hash)
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    // A `%` that somebody typed.
    return part
  }
}
