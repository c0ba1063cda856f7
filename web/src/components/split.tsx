import type { ComponentChildren, JSX } from 'preact'
import './split.css'

/** What there is, and beside it what is chosen of it; on a phone one or the other. */
export function Split({
  listLabel,
  list,
  back,
  isChosen,
  children,
}: {
  listLabel: string
  list: ComponentChildren
  /** To the list, for a phone. */
  back: { title: string; href: string }
  isChosen: boolean
  /** What is chosen, or how to choose. */
  children: ComponentChildren
}): JSX.Element {
  return (
    <div class={isChosen ? 'split has-choice' : 'split'}>
      <section class="split-list" aria-label={listLabel}>
        {list}
      </section>
      <section class="split-chosen" aria-label="Details">
        {isChosen && (
          <p class="split-back">
            <a href={back.href}>← {back.title}</a>
          </p>
        )}
        {children}
      </section>
    </div>
  )
}

/** Above the rows of a pack; those have the class `split-row`. */
export function PackRow({ pack, count }: { pack: string; count: number }): JSX.Element {
  return (
    <div class="split-pack">
      <span class="name">{pack}</span> <span class="count">{count}</span>
    </div>
  )
}
