export { Room } from './room.ts'
export { createTemplateThread, type TemplateThread, type Turn } from './rendering.ts'
