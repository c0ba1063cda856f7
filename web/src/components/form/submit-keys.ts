import type { TargetedKeyboardEvent } from 'preact'

/**
 * Of a form of several fields: Ctrl+Enter, or Cmd+Enter, in any of them sends it. Enter alone does not, as it would in single
 * lines: in others it begins a new one, and nobody looks which kind it is.
 */
export function submitKeys(submit: () => void): (event: TargetedKeyboardEvent<HTMLElement>) => void {
  return (event) => {
    if (event.key !== 'Enter') return
    if (event.ctrlKey || event.metaKey) submit()
    else if (!(event.target instanceof HTMLInputElement)) return
    event.preventDefault()
  }
}
