/** Port: delivers facts from a commit to their listeners. The bus only wakes; the rows hold the work. */
import type { Fact, FactName, FactPayloads } from './facts.ts'

export type Unsubscribe = () => void

export interface Bus {
  /** Facts published by a listener follow the current fact, in the same order for all. */
  publish(fact: Fact): void
  /**
   * Listeners are synchronous and cheap. A throw is logged, and the other listeners still receive the fact. A listener
   * receives only facts published while it is subscribed.
   */
  subscribe<N extends FactName>(name: N, listener: (payload: FactPayloads[N]) => void): Unsubscribe
}
