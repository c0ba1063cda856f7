import type { ComponentChildren, JSX } from 'preact'
import { useMedia } from '../../components/media.ts'

/** Where the parts of a webhook stand one below the other. */
export const NARROW_PAGE = '(max-width: 1100px)'

/** A card that is folded where there is little room. */
export function Fold({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
  const isNarrow = useMedia(NARROW_PAGE)
  return (
    <details class="card fold" open={!isNarrow}>
      <summary>
        <h2>{title}</h2>
      </summary>
      {children}
    </details>
  )
}
