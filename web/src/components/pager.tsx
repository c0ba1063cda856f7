import type { JSX } from 'preact'
import { hrefOf, useLocation } from '../router.ts'

/** Where to begin, as the address says it; 0 for whatever is no number. */
export function offsetIn(query: URLSearchParams): number {
  const offset = Number(query.get('offset') ?? 0)
  return Number.isSafeInteger(offset) && offset > 0 ? offset : 0
}

/** Which part of a list is shown, and links to the parts beside it: `offset` in the address. Nothing while all is shown. */
export function Pager({ total, offset, limit, what }: PagerProps): JSX.Element | null {
  const { path, query } = useLocation()
  if (total <= limit && offset === 0) return null
  const at = (start: number): string => {
    const there = new URLSearchParams(query)
    if (start <= 0) there.delete('offset')
    else there.set('offset', String(start))
    return hrefOf(path, there)
  }
  return (
    <nav class="pager" aria-label={`Pages of the ${what}`}>
      {offset > 0 && <a href={at(offset - limit)}>Previous</a>}
      <span>
        {total === 0 || offset >= total ? 'None' : `${offset + 1}–${Math.min(offset + limit, total)}`} of {total} {what}
      </span>
      {offset + limit < total && <a href={at(offset + limit)}>Next</a>}
    </nav>
  )
}

export interface PagerProps {
  /** Of all that match. */
  total: number
  offset: number
  limit: number
  /** `API keys` */
  what: string
}
