import type { ComponentChildren, JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

export interface TableProps {
  /** `<thead>` with one row, and `<tbody>`; each cell spans one column. */
  children: ComponentChildren
  label?: string
  class?: string
}

/** On a phone each row becomes a block, and each cell names its column: the style sheet shows `data-title`. */
export function Table({ children, label, class: name = '' }: TableProps): JSX.Element {
  const table = useRef<HTMLTableElement>(null)
  useLayoutEffect(() => {
    const { tHead: head, tBodies: bodies } = table.current ?? {}
    const titles = [...(head?.rows[0]?.cells ?? [])].map(({ textContent }) => textContent)
    for (const { rows } of bodies ?? []) {
      for (const { cells } of rows)
        for (const [i, cell] of [...cells].entries()) cell.dataset['title'] = titles[i] ?? ''
    }
  })
  return (
    <div class="table-scroll">
      <table ref={table} class={`rows ${name}`} {...(label !== undefined && { 'aria-label': label })}>
        {children}
      </table>
    </div>
  )
}
