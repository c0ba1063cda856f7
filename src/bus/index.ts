export type { Bus, Unsubscribe } from './bus.ts'
export type { Fact, FactOf, FactPayloads } from './facts.ts'
export { createMemoryBus } from './memory.ts'
