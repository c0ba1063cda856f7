export { createRowQueue } from './row-queue.ts'
