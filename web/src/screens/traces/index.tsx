/** Traces: each event with the rules that matched it and the executions they caused. */
import type { JSX } from 'preact'
import type { ScreenProps } from '../../router.ts'
import { TraceList } from './trace-list.tsx'
import { TracePage } from './trace-page.tsx'
import './traces.css'

export default function Traces({ path: [id], query }: ScreenProps): JSX.Element {
  return id === undefined ? <TraceList query={query} /> : <TracePage key={id} id={id} query={query} />
}
