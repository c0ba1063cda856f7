export { createKeyedLock, type KeyedLock } from './keyed-lock.ts'
export { coalesce } from './coalesce.ts'
export { createPause } from './pause.ts'
export { runAll } from './run-all.ts'
