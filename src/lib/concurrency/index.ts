export { createKeyedLock, type KeyedLock } from './keyed-lock.ts'
