/** Trigger types, timers and trigger instances. */
import type { JSX } from 'preact'
import { hrefOf, type ScreenProps } from '../../router.ts'
import { InstancePage } from './instance.tsx'
import { InstanceList } from './instances.tsx'
import { Timers } from './timers.tsx'
import { TriggerTypes } from './types.tsx'
import './triggers.css'

export default function Triggers({ path: [first = 'types', ...rest], query }: ScreenProps): JSX.Element {
  const [chosen] = rest
  if (first === 'instances' && chosen !== undefined) return <InstancePage key={chosen} id={chosen} />
  if (first === 'instances') return <InstanceList query={query} />
  if (first === 'timers') return <Timers />
  if (first === 'types') return <TriggerTypes chosen={chosen} query={query} />
  return (
    <div class="page">
      <h1>Page not found</h1>
      <p>
        <a href={hrefOf(['triggers'])}>Open the triggers</a>
      </p>
    </div>
  )
}
