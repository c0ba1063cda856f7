import type { ComponentChildren, JSX } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'

/** Modal; Escape and a click beside it close it. The browser keeps the keyboard inside, and gives it back afterwards. */
export function Dialog({
  title,
  onClose,
  stays = false,
  children,
}: {
  title: string
  onClose: () => void
  /** Only a button inside closes it: what it shows is not to be lost by a slip. There is no other button for that. */
  stays?: boolean
  children: ComponentChildren
}): JSX.Element {
  const element = useRef<HTMLDialogElement>(null)
  const isGone = useRef(false)
  const titleId = useId()
  // Of the layout: what is to be done with it has to be done while it is in the document.
  useLayoutEffect(() => {
    const { current } = element
    current?.showModal()
    return () => {
      isGone.current = true
      // The keyboard goes back to where it was, which it does not when the dialog is merely removed.
      current?.close()
    }
  }, [])
  return (
    <dialog
      ref={element}
      aria-labelledby={titleId}
      onCancel={(event) => {
        if (stays) event.preventDefault()
      }}
      onClose={() => {
        if (isGone.current) return
        // Browsers let nobody keep it open against the second Escape.
        if (stays) element.current?.showModal()
        else onClose()
      }}
      onClick={(event) => {
        if (!stays && event.target === event.currentTarget) onClose()
      }}
    >
      <div class="dialog-content">
        <header>
          <h2 id={titleId}>{title}</h2>
          {!stays && (
            <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
              ×
            </button>
          )}
        </header>
        {children}
      </div>
    </dialog>
  )
}

/** For what cannot be undone. */
export function Confirm({
  title,
  text,
  action,
  onConfirm,
  onClose,
}: {
  title: string
  text: string
  /** Of the button that does it: `Delete the key`. */
  action: string
  onConfirm: () => void
  onClose: () => void
}): JSX.Element {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <div class="buttons">
        <button type="button" onClick={onClose}>
          Go back
        </button>
        <button
          type="button"
          class="danger"
          onClick={() => {
            onClose()
            onConfirm()
          }}
        >
          {action}
        </button>
      </div>
    </Dialog>
  )
}
