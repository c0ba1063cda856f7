export { Lru } from './lru.ts'
