export type { Bus, Unsubscribe } from './bus.ts'
export type { Fact, FactPayloads } from './facts.ts'
export { createMemoryBus } from './memory.ts'
