/**
 * What can happen, and what has: `#/triggers` (types and triggers), `#/triggers/timers`, `#/triggers/instances`,
 * `#/triggers/instances/<id>`.
 */
import type { JSX } from 'preact'
import type { ScreenProps } from '../../app.tsx'
import { hrefOf } from '../../router.ts'
import { InstanceList } from './instance-list.tsx'
import { InstancePage } from './instance-page.tsx'
import { TimerList } from './timer-list.tsx'
import { TypeList } from './type-list.tsx'
import './triggers.css'

const tabs = [
  { path: ['triggers'], title: 'Types and triggers' },
  { path: ['triggers', 'timers'], title: 'Timers' },
  { path: ['triggers', 'instances'], title: 'Trigger instances' },
] as const

export default function Triggers({ path: [part, id], query }: ScreenProps): JSX.Element {
  if (part === 'instances' && id !== undefined) return <InstancePage key={id} id={id} />
  const shown = part === 'instances' || part === 'timers' ? part : undefined
  return (
    <div class={`page triggers ${shown === 'instances' ? 'fill' : ''}`}>
      <h1>Triggers</h1>
      <nav class="tabs" aria-label="Triggers">
        {tabs.map(({ path, title }) => (
          <a key={title} href={hrefOf(path)} aria-current={path[1] === shown ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      {shown === 'instances' ? (
        <InstanceList query={query} />
      ) : shown === 'timers' ? (
        <TimerList />
      ) : (
        <TypeList query={query} />
      )}
    </div>
  )
}
