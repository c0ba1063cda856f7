/** The address is what is shown: everything that somebody may want to send to a colleague stands behind the `#`. */
import { useEffect, useRef, useState } from 'preact/hooks'

export interface Location {
  /** Parts of the path, decoded: `#/history/65f0/general` is `history`, `65f0`, `general`. */
  path: readonly string[]
  query: URLSearchParams
}

/** What the address tells a screen. */
export interface ScreenProps {
  /** Parts of the path after the name of the screen. */
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
    // The browser sends no event for a change by a script.
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
    const update = (): void => {
      // The address is put back before any listener reads it.
      keeper?.()
      setHash(location.hash)
    }
    update()
    window.addEventListener('hashchange', update)
    return () => window.removeEventListener('hashchange', update)
  }, [])
  return parseLocation(hash)
}

/** Puts the address back while it must not change. */
let keeper: (() => void) | undefined

/** An attempt to leave a page with unsaved changes. */
export interface LeaveGuard {
  /** Where to; undefined: nowhere. */
  href: string | undefined
  readonly stay: () => void
  readonly leave: () => void
}

/**
 * Keeps the address while leaving its path would lose changes: the page asks, and calls `leave` or `stay`. When the tab
 * is closed the browser asks.
 *
 * @param isHeld read at the moment of leaving, so that nobody is asked after saving
 */
export function useLeaveGuard(isHeld: () => boolean): LeaveGuard {
  const [href, setHref] = useState<string>()
  const latest = useRef(isHeld)
  latest.current = isHeld
  const isLeaving = useRef(false)
  useEffect(() => {
    const own = location.hash
    const { path } = parseLocation(own)
    const keep = (): void => {
      const wanted = location.hash
      if (isLeaving.current || !latest.current() || isSamePath(parseLocation(wanted).path, path)) return
      history.pushState(null, '', own)
      setHref(wanted)
    }
    const ask = (event: BeforeUnloadEvent): void => {
      if (latest.current()) event.preventDefault()
    }
    keeper = keep
    window.addEventListener('beforeunload', ask)
    return () => {
      if (keeper === keep) keeper = undefined
      window.removeEventListener('beforeunload', ask)
    }
  }, [])
  return {
    href,
    stay: () => setHref(undefined),
    leave() {
      if (href === undefined) return
      isLeaving.current = true
      navigate(href)
    },
  }
}

function isSamePath(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((part, i) => part === b[i])
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    // A `%` that somebody typed.
    return part
  }
}
