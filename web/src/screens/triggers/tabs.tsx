import type { JSX } from 'preact'
import { hrefOf } from '../../router.ts'

type Part = 'types' | 'timers' | 'instances'

const tabs: readonly [part: Part, title: string, path: readonly string[]][] = [
  ['types', 'Trigger types', ['triggers']],
  ['timers', 'Timers', ['triggers', 'timers']],
  ['instances', 'Trigger instances', ['triggers', 'instances']],
]

/** The heading of each part. */
export function Tabs({ part }: { part: Part }): JSX.Element {
  return (
    <header class="triggers-head">
      <h1>Triggers</h1>
      <nav class="tabs" aria-label="Trigger views">
        {tabs.map(([name, title, path]) => (
          <a key={name} href={hrefOf(path)} aria-current={name === part ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
    </header>
  )
}
