/** Port: facts on their way from a commit to whoever reacts. The bus wakes; it does not carry duty. */
import type { Fact, FactName, FactPayloads } from './facts.ts'

export type Unsubscribe = () => void

export interface Bus {
  publish(fact: Fact): void
  /** Listeners are synchronous and cheap; a throw is logged and the others still hear the fact. */
  subscribe<N extends FactName>(name: N, listener: (payload: FactPayloads[N]) => void): Unsubscribe
}
