/**
 * A form that was refused shows a banner, and the focus goes to the field that the refusal is about, else to the banner:
 *
 * ```tsx
 * const [refusal, setRefusal] = useState<Refusal>()
 * <input id={id} {...refusedField(refusal, 'password', bannerId)} />
 * <RefusalBanner refusal={refusal} id={bannerId} />
 * // in save():
 * try { await send() } catch (error) { setRefusal(refusalBy(error, ['password'])) }
 * ```
 */
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError, messageOf } from '../../api/transport.ts'
import { LongText } from '../long-text.tsx'

/** A new object for each refusal: each moves the focus. */
export interface Refusal {
  readonly text: string
  /** Name of the field that it is about. */
  readonly field?: string
}

/** Names and indexes from the root of the body to the field that the server refused; empty: it named none. */
export function pathOfRefusal(error: unknown): readonly string[] {
  const path = error instanceof ApiError ? error.details['path'] : undefined
  return Array.isArray(path) ? path.map(String) : []
}

/** @param fields names of the fields: paths in the body, joined by dots, such as `context.trace_context` */
export function refusalBy(error: unknown, fields: readonly string[] = []): Refusal {
  const path = pathOfRefusal(error)
  for (let length = path.length; length > 0; length -= 1) {
    const field = path.slice(0, length).join('.')
    if (fields.includes(field)) return { text: messageOf(error), field }
  }
  return { text: messageOf(error) }
}

/** Attributes of a control. @param describedBy id of what explains it anyway */
export function refusedField(
  refusal: Refusal | undefined,
  field: string,
  bannerId: string,
  describedBy?: string,
): { 'aria-invalid': boolean; 'aria-describedby': string | undefined } {
  const isRefused = refusal?.field === field
  const ids = [...(isRefused ? [bannerId] : []), ...(describedBy === undefined ? [] : [describedBy])]
  return { 'aria-invalid': isRefused, 'aria-describedby': ids.length === 0 ? undefined : ids.join(' ') }
}

/** Stands within its `<form>`, near the button that sends it. */
export function RefusalBanner({ refusal, id }: { refusal: Refusal | undefined; id?: string }): JSX.Element | null {
  const banner = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (refusal === undefined || banner.current === null) return
    const wrong = banner.current.closest('form')?.querySelector<HTMLElement>('[aria-invalid="true"]')
    const folded = wrong?.closest('details')
    if (folded !== null && folded !== undefined) folded.open = true
    const target = wrong ?? banner.current
    target.focus()
    target.scrollIntoView({ block: 'nearest' })
  }, [refusal])
  if (refusal === undefined) return null
  return (
    <div class="failure refusal" role="alert" tabIndex={-1} ref={banner} {...(id !== undefined && { id })}>
      <p>
        <LongText text={refusal.text} />
      </p>
    </div>
  )
}
