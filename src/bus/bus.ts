/** Port: facts on their way from a commit to whoever reacts. The bus wakes; it does not carry duty. */
import type { Fact, FactName, FactPayloads } from './facts.ts'

export type Unsubscribe = () => void

export interface Bus {
  /** What a listener publishes is heard after the fact it is listening to, by all in the same order. */
  publish(fact: Fact): void
  /**
   * Listeners are synchronous and cheap; a throw is logged and the others still hear the fact. Facts from before the
   * subscription, and after its end, are not heard.
   */
  subscribe<N extends FactName>(name: N, listener: (payload: FactPayloads[N]) => void): Unsubscribe
}
