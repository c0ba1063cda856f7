export { isLoopback } from './loopback.ts'
