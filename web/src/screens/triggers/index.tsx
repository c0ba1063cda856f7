/** What can happen, what has happened, and what came of it. */
import type { JSX } from 'preact'
import { hrefOf, type ScreenProps } from '../../router.ts'
import { Instance } from './instance.tsx'
import { Instances } from './instances.tsx'
import { Timers } from './timers.tsx'
import { Types } from './types.tsx'
import './triggers.css'

export default function Triggers({ path: [first = 'types', ...rest], query }: ScreenProps): JSX.Element {
  const [chosen] = rest
  if (first === 'instances' && chosen !== undefined) return <Instance key={chosen} id={chosen} />
  if (first === 'instances') return <Instances query={query} />
  if (first === 'timers') return <Timers />
  if (first === 'types') return <Types chosen={chosen} query={query} />
  return (
    <div class="page">
      <h1>Page not found</h1>
      <p>
        <a href={hrefOf(['triggers'])}>Open the triggers</a>
      </p>
    </div>
  )
}
