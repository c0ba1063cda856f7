/** Text that is put in where somebody was typing. */
import type { RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

type TextField = (HTMLInputElement | HTMLTextAreaElement) & { list?: HTMLDataListElement | null }

/** The field below an element that had the focus last, of those that take text. */
export function useLastField(within: RefObject<HTMLElement | null>): { current: TextField | null } {
  const last = useRef<TextField>(null)
  useEffect(() => {
    const look = ({ target }: FocusEvent): void => {
      const isText =
        target instanceof HTMLTextAreaElement ||
        (target instanceof HTMLInputElement && ['text', ''].includes(target.type))
      if (isText && target.closest('.criterion, .parameter') !== null) last.current = target
    }
    const element = within.current
    element?.addEventListener('focusin', look)
    return () => element?.removeEventListener('focusin', look)
  }, [])
  return last
}

/** Inserts at the cursor, replacing the selection; the field sends the event of typing. */
export function insertText(field: TextField, text: string): void {
  field.focus()
  field.setRangeText(text, field.selectionStart ?? field.value.length, field.selectionEnd ?? field.value.length, 'end')
  field.dispatchEvent(new InputEvent('input', { bubbles: true }))
}
